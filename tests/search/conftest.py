"""The tables and estimators of the audit's tests."""

from tests.audit.conftest import classifier, people, policies, regressor

__all__ = ["classifier", "people", "policies", "regressor"]
