"""The estimator of a release, ready to predict."""

from __future__ import annotations

import os

from discreet.errors import CertificateError, DataNotFoundError, ParameterError
from discreet.files import expand_home
from discreet.limits import shown
from discreet.methods.base import NodeClassifier
from discreet.methods.parameters import Compute
from discreet.privacy.certificate import certified_epsilon
from discreet.release.verify import examine


def load_release(folder: str | os.PathLike[str], compute: Compute | None = None) -> NodeClassifier:
    """Read a release after a check of its integrity. ``compute`` says where it runs.

    A release that is not to be published (a fixed noise seed, an advisory) is read; one whose parts do not belong
    together is refused. Every file is read once: what is checked is what is used.
    """
    if not expand_home(folder).is_dir():
        raise DataNotFoundError(f"there is no release at {folder}")
    if compute is not None and not isinstance(compute, Compute):
        raise ParameterError(f"compute must be a Compute, not {shown(compute)}")
    (compute or Compute()).prepare()  # what is wrong with it is not the release's fault
    try:
        estimator = examine(folder, compute).require_sound()
    except CertificateError as error:
        raise CertificateError(f"{folder}: {error}") from None
    estimator.epsilon_spent_ = certified_epsilon(estimator.certificate_)
    return estimator
