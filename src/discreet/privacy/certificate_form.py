"""The form of ``certificate.json`` and ``config.json``: which keys, of which types, within which limits.

A file that has the form can be read by the rest of the package without a surprise; what it says may still be wrong.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from discreet.errors import CertificateError
from discreet.files import INFINITE
from discreet.graph.graph import PublicFacts
from discreet.limits import NODES, SEED, STAGES
from discreet.privacy.calibration import MOST_STEPS

# Bounds of what is written, each far above what a plan has: anybody may have made a certificate.
Text = Annotated[str, Field(max_length=20_000)]
Count = Annotated[int, Field(ge=0, le=NODES.high)]
Whole = Annotated[int, Field(ge=1, le=MOST_STEPS)]
Number = Annotated[float, Field(ge=0)]
MaybeInfinite = Number | Literal["infinite"]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Shape = Annotated[list[Count], Field(max_length=8)]
assert INFINITE == "infinite"  # what files.to_json writes


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Lenient(_Form):
    """Of schema 1, whose keys were never written down: those that are known are checked, others are let be."""

    model_config = ConfigDict(extra="ignore")


class _Level(_Form):
    spec: Text
    relation: Text


class _Covers(_Form):
    name: Text
    means: Text


class _Claim(_Form):
    by: Text
    status: Text


class _Budget(_Form):
    epsilon: MaybeInfinite
    delta: Number | Literal["auto"]


class _Source(_Form):
    source: Text
    for_release: bool


class _StageNoise(_Form):
    std: MaybeInfinite | None
    exact: bool
    sampler: Text


class _Stage1(_Lenient):
    name: Text
    query: Text
    mechanism: Text
    sensitivity: MaybeInfinite
    metric: Text
    why: Text
    runs: Whole
    shape: Shape
    answer_shape: Shape | None
    parameters: dict[Text, Any]
    event: dict[Text, Any]


class _Stage2(_Stage1):
    model_config = ConfigDict(extra="forbid")
    noise: _StageNoise
    proof: Text


def _facts_form() -> type[BaseModel]:
    """The form of :class:`PublicFacts`, whatever its fields are."""
    hints = get_type_hints(PublicFacts)
    fields: dict[str, Any] = {
        field.name: (Count if hints[field.name] is int else hints[field.name], _default(field))
        for field in dataclasses.fields(PublicFacts)
    }
    return create_model("Facts", __base__=_Form, **fields)


def _default(field: dataclasses.Field[Any]) -> Any:
    """Facts that came later have a default, and older configurations do not name them."""
    return ... if field.default is dataclasses.MISSING else field.default


_Facts = _facts_form()


class _Certificate1(_Lenient):
    schema_: Literal[1] = Field(alias="schema")
    task: Text
    method: Text
    accounting: Literal["rigorous", "as-published"]
    claim: _Claim | None = None
    level: _Level
    public: Text
    trust: Text
    covers: _Covers
    epsilon: MaybeInfinite
    delta: Annotated[float, Field(ge=0, lt=1)]
    budget: _Budget
    epsilon_by_accountant: dict[Text, MaybeInfinite]
    stages: Annotated[list[_Stage1], Field(max_length=STAGES)]
    trial_stages: Annotated[list[_Stage1], Field(max_length=STAGES)] | None = None
    noise: _Source
    tuning: Text
    notes: list[Text]
    caveats: list[Text]
    versions: dict[Text, Text]
    files: dict[Text, Hash]
    digest: Hash


class _Extension(_Form):
    """Of a release that was extended to one more graph: what that graph alone cost, in the last so many stages."""

    epsilon: MaybeInfinite
    delta: Annotated[float, Field(ge=0, lt=1)]
    stages: Annotated[int, Field(ge=1, le=STAGES)]


class _Certificate2(_Certificate1):
    model_config = ConfigDict(extra="forbid")
    schema_: Literal[2] = Field(alias="schema")  # type: ignore[assignment]
    delta_reason: Text
    facts: Annotated[list[_Facts], Field(min_length=1, max_length=STAGES)]  # type: ignore[valid-type]
    stages: Annotated[list[_Stage2], Field(max_length=STAGES)]  # type: ignore[assignment]
    trial_stages: Annotated[list[_Stage2], Field(max_length=STAGES)] | None = None  # type: ignore[assignment]
    duties: list[Text]
    data: Text | None
    purpose: Text | None
    issuer: Text | None
    date: Text
    parent: dict[Text, Any] | None
    extension: _Extension | None = None
    ledger: Text | None


class _ConfigPrivacy(_Form):
    level: Text
    epsilon: MaybeInfinite
    delta: Number | Literal["auto"]


class _ConfigExtension(_Form):
    public: _Facts  # type: ignore[valid-type]
    epsilon: Number
    delta: Number | Literal["auto"]


class _ConfigSplit(_Form):
    by: Text
    seed: Annotated[int, Field(ge=SEED.low, le=SEED.high)]


class _Config(_Form):
    format_: Literal[1] = Field(alias="format")
    method: Text
    params: dict[Text, Any]
    privacy: _ConfigPrivacy
    public: _Facts  # type: ignore[valid-type]
    extra_public: Annotated[list[_Facts], Field(max_length=STAGES)]  # type: ignore[valid-type]
    schema_: dict[Text, Any] | None = Field(None, alias="schema")
    extensions: Annotated[list[_ConfigExtension], Field(max_length=STAGES)] = []
    split: _ConfigSplit | None = None
    decision: Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1)] | None = None


_FORMS: dict[int, type[BaseModel]] = {1: _Certificate1, 2: _Certificate2}


def check_certificate(content: Any, name: str) -> None:
    """Refuse, in one sentence, what does not have the form of a certificate."""
    schema = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(schema, int) or schema not in _FORMS:
        raise CertificateError(f"{name} has schema {schema!r:.40}; this version reads {' and '.join(map(str, _FORMS))}")
    _check(_FORMS[schema], content, name)


def check_config(content: Any, name: str) -> None:
    """Refuse, in one sentence, what does not have the form of a configuration."""
    _check(_Config, content, name)


def _check(form: type[BaseModel], content: Any, name: str) -> None:
    try:
        form.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = f"{'.'.join(str(part) for part in first['loc']) or 'the whole'!s:.80}"
        if first["type"] == "missing":
            raise CertificateError(f"{name} lacks {place}") from None
        if first["type"] == "extra_forbidden":
            raise CertificateError(f"{name} has {place}, which is not known") from None
        rule = first["msg"].removeprefix("Input ")
        raise CertificateError(f"{name}: {place} {rule}, not {first['input']!r:.60}") from None
