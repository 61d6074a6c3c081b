"""What people look at: plain data in, figures out."""
