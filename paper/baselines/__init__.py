"""The networks that the paper compares with, one file each, and estimators round them."""
