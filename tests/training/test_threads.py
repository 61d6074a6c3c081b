import threading

import pytest
import torch

from fcorr import FCorrClassifier
from fcorr.nn.engine import runs_compiled, use_engine
from fcorr.training.threads import start_workers


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def thread_and_setting(_):
    return threading.get_ident(), torch.get_num_threads()


def test_small_work_stays_in_its_thread(two_threads):
    with start_workers(100) as workers:
        assert set(workers.map(thread_and_setting, range(4))) == {(threading.get_ident(), 1)}
    assert torch.get_num_threads() == 2


def test_large_work_is_shared_out(two_threads):
    barrier = threading.Barrier(2, timeout=20)

    def meet(_):
        barrier.wait()  # only two threads at once get past it
        return thread_and_setting(_)

    with start_workers(10**7) as workers:
        found = set(workers.map(meet, range(2)))
    assert len(found) == 2
    assert {setting for _, setting in found} == {1}  # torch's own threads are out of the way
    assert torch.get_num_threads() == 2


def test_results_come_in_order(two_threads):
    with start_workers(10**7) as workers:
        assert list(workers.map(lambda i: i * i, range(50))) == [i * i for i in range(50)]


def test_threads_do_not_run_far_ahead(two_threads):
    started = []
    with start_workers(10**7) as workers:
        results = workers.map(lambda i: started.append(i) or i, range(100))
        assert next(results) == 0
        assert len(started) <= 4
        assert list(results) == list(range(1, 100))


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_threads_have_the_engine_of_their_caller(two_threads, engine):
    with use_engine(engine), start_workers(10**7) as workers:
        found = set(workers.map(lambda _: runs_compiled(torch.zeros(1)), range(10)))
    assert found == {engine == "compiled"}


def test_an_error_reaches_the_caller(two_threads):
    def fail(i):
        raise ZeroDivisionError(i)

    with pytest.raises(ZeroDivisionError), start_workers(10**7) as workers:
        list(workers.map(fail, range(3)))
    assert torch.get_num_threads() == 2
    with pytest.raises(KeyboardInterrupt), start_workers(100):
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("batch_size", [32, 200])
def test_fit_leaves_the_setting_alone(two_threads, table, batch_size):
    FCorrClassifier(head=(4,), epochs=1, batch_size=batch_size).fit(*table)
    assert torch.get_num_threads() == 2
    with pytest.raises(ValueError, match="finite loss"):
        FCorrClassifier(head=(4,), learning_rate=1e30, epochs=2).fit(*table)
    assert torch.get_num_threads() == 2
