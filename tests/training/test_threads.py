import pytest
import torch

from fcorr import FCorrClassifier
from fcorr.training.threads import threads_for


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("n_numbers", "expected"), [(100, 1), (10**7, 2)])
def test_small_steps_use_one_thread(two_threads, n_numbers, expected):
    with threads_for(n_numbers):
        assert torch.get_num_threads() == expected
    assert torch.get_num_threads() == 2


def test_setting_comes_back_after_an_error(two_threads):
    with pytest.raises(KeyboardInterrupt), threads_for(100):
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("batch_size", [32, 200])
def test_fit_leaves_the_setting_alone(two_threads, table, batch_size):
    FCorrClassifier(head=(1024,), epochs=1, batch_size=batch_size).fit(*table)
    assert torch.get_num_threads() == 2


def test_failed_fit_leaves_the_setting_alone(two_threads, table):
    with pytest.raises(ValueError, match="finite loss"):
        FCorrClassifier(head=(4,), learning_rate=1e30, epochs=2).fit(*table)
    assert torch.get_num_threads() == 2
