from discreet.privacy import group_sampling as _group_sampling  # noqa: F401  (it registers its events)
from discreet.privacy import selection as _selection  # noqa: F401  (so does this)
