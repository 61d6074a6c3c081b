import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from fcorr.estimators import trainer
from fcorr.nn.engine import runs_compiled, use_engine
from fcorr.training.rows import start_workers
from tests.tables import make_model


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
    make_model(epochs=1, advanced={"batch_size": batch_size}).fit(*table)
    assert torch.get_num_threads() == 2
    with pytest.raises(ValueError, match="finite loss"):
        make_model(learning_rate=1e30).fit(*table)
    assert torch.get_num_threads() == 2


# Several at once


def set_own(n_threads):
    torch.get_num_threads()  # until it was asked, a thread keeps following the others
    torch.set_num_threads(n_threads)


def in_new_thread(function, *arguments):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments).result()


def test_blocks_that_overlap(two_threads):
    """Each has the number of its own thread; no setting outlives its block."""
    with ThreadPoolExecutor(1) as second, ThreadPoolExecutor(1) as third:
        third.submit(set_own, 3).result()
        torch.set_num_threads(2)
        own, other, larger = (start_workers(10**7) for _ in range(3))
        with own as workers:
            list(workers.map(thread_and_setting, range(4)))
            # The second thread is new to torch.
            assert second.submit(other.__enter__).result()._most_pending == 2 * 2
            assert third.submit(larger.__enter__).result()._most_pending == 2 * 3
            settings = [t.submit(torch.get_num_threads).result() for t in (second, third)]
            assert [torch.get_num_threads(), *settings] == [1, 1, 1]
        third.submit(larger.__exit__, None, None, None).result()
        second.submit(other.__exit__, None, None, None).result()
        settings = [t.submit(torch.get_num_threads).result() for t in (second, third)]
        assert [torch.get_num_threads(), *settings] == [2, 2, 3]
    assert in_new_thread(torch.get_num_threads) == 2


def test_a_thread_with_one_stays_so(two_threads):
    with ThreadPoolExecutor(1, initializer=set_own, initargs=(1,)) as single:
        single.submit(int).result()
        torch.set_num_threads(2)
        block = start_workers(10**7)
        assert single.submit(block.__enter__).result()._pool is None
        assert in_new_thread(torch.get_num_threads) == 2
        single.submit(block.__exit__, None, None, None).result()
        assert single.submit(torch.get_num_threads).result() == 1
    assert in_new_thread(torch.get_num_threads) == 2


def test_fits_that_overlap(two_threads, table, monkeypatch):
    """Two fits, of other engines and numbers of threads, are what they would be alone."""
    engines = {"plain": 2, "compiled": 3}

    def fit(engine):
        set_own(engines[engine])
        model = make_model(advanced={"engine": engine}).fit(*table)
        return model.predict_proba(table[0]), model.history_.engine, torch.get_num_threads()

    alone = [in_new_thread(fit, engine) for engine in engines]
    barrier, train, found = threading.Barrier(2, timeout=60), trainer.train, []

    def train_together(*args, **options):
        barrier.wait()
        history = train(*args, **options)
        barrier.wait()
        found.append(in_new_thread(torch.get_num_threads))
        barrier.wait()
        return history

    monkeypatch.setattr(trainer, "train", train_together)
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(fit, engines))
    for (expected, *_), (predicted, engine, n_threads) in zip(alone, together, strict=True):
        np.testing.assert_array_equal(predicted, expected)
        assert n_threads == engines[engine]
    assert {*found, in_new_thread(torch.get_num_threads)} <= {2, 3}  # theirs, never the 1 within
    assert torch.get_num_threads() == 2
