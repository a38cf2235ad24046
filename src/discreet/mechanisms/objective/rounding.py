"""What double precision does to a perturbed minimiser, and why the noise on the output hides all of it.

**The ideal release** is Θ*, the exact minimiser of L(Θ) = (1/n₁)Σᵢ uᵢℓ(zᵢᵀθ; yᵢ) + (Λ/2)‖Θ‖² + ⟨B, Θ⟩/n₁, with rows zᵢ
as exact propagation gives them and B of the density ∝ exp(−β‖b‖): that is what Theorem 1 speaks of. (u, y, Λ and β are
the very doubles, equal on neighbours.) The machine has rows ẑᵢ within e_z of zᵢ, a tilt B̂ within e_b of B (``tilt``),
and a Θ̂ at which the gradient that it computes has norm at most γ/2. L is Λ-strongly convex, so ‖Θ̂ − Θ*‖_F ≤
‖∇L(Θ̂)‖_F/Λ, and everything that was rounded, whatever it was, is part of ∇L(Θ̂). **So if ‖∇L(Θ̂)‖_F ≤ γ whatever the
graph, then Θ̂ = Θ* + E with ‖E‖_F ≤ γ/Λ, and on a neighbour, given the same Θ*, Θ̂ lies within 2γ/Λ of here.** A
Gaussian mechanism of that sensitivity (on a public grid, exact) composed with the release of Θ* is what the plan
charges; where E is random given Θ*, the answer is a mixture of such answers, which is no easier to tell apart.

**The gradient, per class** (‖θ‖ ≤ t; u = 2⁻⁵³; R bounds ‖b̂‖; ‖ẑ‖ ≤ 1 + 2⁻¹²). *From the machine's own numbers ẑ, b̂*:

- scores: |fl(ẑᵀθ) − ẑᵀθ| ≤ 1.001·d·u·t, which moves ℓ′ by at most c₂ times that;
- slopes err by at most 2⁻⁴⁷c₁ beside that (``losses``), and weighing them by u·c₁;
- sums over rows (``ops.moments.cross_moments``) err by 1.001·n₁·2⁻⁴⁴·c₁, in whatever order and with or without fused
  operations; adding b̂, dividing by n₁, adding Λθ by at most 4u(c₁ + R/n₁) + 3uΛt.

Together at most **2⁻⁴³c₁ + 2⁻⁵¹(c₁ + R/n₁) + t·(2⁻⁵²c₂d + 2⁻⁵¹Λ)**: :meth:`Rounding.of_the_machine`. *From ẑ to z*:
zℓ′(zᵀθ) moves by at most e_z(c₁ + 1.001·c₂t); *from b̂ to b* by e_b/n₁: :meth:`Rounding.of_the_gradient`.

**t.** Λθ̂ = ∇L(θ̂) − (1/n₁)Σ… − b/n₁, so Λ‖θ̂‖ ≤ γ/2 + a₀ + a₁‖θ̂‖ + c₁ + R/n₁, where a₀ + a₁t is the error above. If
a₁ ≤ Λ/4 and γ/2 + a₀ ≤ (c₁ + R/n₁)/4, both public and checked, then ‖θ̂‖ ≤ 2(c₁ + R/n₁)/Λ = t. So with
γ ≥ 4√c·(a₀ + a₁t): ‖∇L(Θ̂)‖_F ≤ γ/2·(1 + 2⁻²⁰) + γ/4 ≤ γ. ∎

**The solver arrives, on every graph**, so that no failure tells anything. Newton's method is tried first; where it does
not arrive, ``minimise`` descends: θ ← θ − ĝ(θ)/(Λ + 2c₂) from zero. The machine's own objective L̃ (of ẑ and b̂) is
Λ-strongly convex and its gradient (Λ + c₂(1 + 2⁻¹²)²)-Lipschitz, so a step with the exact gradient brings θ nearer to
L̃'s minimiser θ̃ by the factor q = 2c₂/(Λ + 2c₂), and rounding adds at most (of_the_machine(2t) + 2⁻⁵⁰t(Λ + 2c₂))/(Λ +
2c₂). With w = of_the_machine(2t) + 2⁻⁵⁰t(Λ + 2c₂): ‖θ_k − θ̃‖ ≤ qᵏ·0.51t + w/Λ, for ‖θ̃‖ ≤ 0.51t, and ‖θ_k‖ ≤ 2t all
the way because w ≤ Λt/128 (next). So the computed gradient falls to (Λ + 2c₂)·qᵏ·0.51t + (κ + 1)w, κ = (Λ + 2c₂)/Λ.
With γ ≥ 16√c(κ + 1)w and k large enough it is below γ/(8√c), where γ/(4√c) is asked for; and evaluated once more, all
classes side by side, it is below γ/2. (w ≤ γ/32 ≤ Λt/128, by the check above.) ∎

**When the coupling of tilts fails**, with probability p, nothing is claimed. p(1 + e^ε) is at most 2⁻³⁸ of δ; it, the
likelihood ratio e^(±(2d+1)cη) of the coupling, and rounding in the formulas of ``perturbation`` are paid by what that
file sets aside, a relative 2⁻³⁶ of ε and of δ.

*Assumptions*: IEEE double precision; products of matrices that add up products of doubles (in any order); exp and
square roots as ``losses`` states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.errors import ParameterError
from discreet.mechanisms.objective.losses import ScalarLoss
from discreet.mechanisms.objective.tilt import NEARLY, tail_reach, tilt_error, tilt_norm

SET_ASIDE = 2.0**-36
"""Of ε and of δ: for formulas in double precision, for the grid of the tilt and for tails."""
_TAIL = 2.0**-38
"""Of δ: what the tails of the coupling may take."""
MOST_ROW_ERROR = 2.0**-12
"""Of e_z: 10⁹ nodes at a restart probability of 0.001 are below it."""


@dataclass(frozen=True)
class Rounding:
    """The public facts of one perturbed minimisation, as the bounds above read them; ``row_error`` is e_z."""

    rows: int
    width: int
    classes: int
    loss: ScalarLoss
    ridge: float
    rate: float
    epsilon: float
    delta: float
    row_error: float

    @property
    def _reach(self) -> float:
        """T of the coupling."""
        log_chance = math.log(_TAIL * self.delta) - self.epsilon - math.log(2)
        return tail_reach(self.width, self.classes, log_chance)

    @property
    def _pull(self) -> float:
        """c₁ + R/n₁: how strongly rows and tilt of one class pull together."""
        return self.loss.c1 + tilt_norm(self.width, self.rate, self._reach) / self.rows

    @property
    def theta_norm(self) -> float:
        """t: at least the norm of every column that is released, before its noise."""
        return 2 * self._pull / self.ridge

    @property
    def _machine_slope(self) -> float:
        return 2.0**-52 * self.loss.c2 * self.width + 2.0**-51 * self.ridge

    def of_the_machine(self, theta_norm: float) -> float:
        """How far the computed gradient of one class may lie from that of the machine's own rows and tilt."""
        return 2.0**-43 * self.loss.c1 + 2.0**-51 * self._pull + theta_norm * self._machine_slope

    @property
    def _fixed(self) -> float:
        """a₀."""
        off = tilt_error(self.width, self.rate, self._reach) / self.rows
        return self.of_the_machine(0.0) + self.row_error * self.loss.c1 + off

    @property
    def _growing(self) -> float:
        """a₁."""
        return self._machine_slope + 1.001 * self.row_error * self.loss.c2

    def of_the_gradient(self) -> float:
        """How far the computed gradient of all classes may lie from that of the exact objective (Frobenius)."""
        return math.sqrt(self.classes) * (self._fixed + self._growing * self.theta_norm) * NEARLY

    def _of_the_descent(self) -> float:
        """What the computed gradient of one class falls to for certain."""
        steep = self.ridge + 2 * self.loss.c2
        wobble = self.of_the_machine(2 * self.theta_norm) + 2.0**-50 * self.theta_norm * steep
        return (steep / self.ridge + 1) * wobble

    def gradient_norm(self, wanted: float) -> float:
        """γ: the norm wanted, or what double precision is sure to reach where that is more; refused where it is
        nothing.

        Guarantee: ‖∇L(Θ̂)‖_F ≤ γ in exact arithmetic, if the computed norm is at most γ/2, which the solver reaches.
        """
        least = max(4 * self.of_the_gradient(), 16 * math.sqrt(self.classes) * self._of_the_descent())
        norm = max(wanted, least * NEARLY)
        too_coarse = self.row_error > MOST_ROW_ERROR or self._growing > self.ridge / 4
        if too_coarse or norm / 2 + self._fixed > self._pull / 4:
            raise ParameterError(
                f"ridge (Lambda) {self.ridge:.3g} is too small for double precision on a graph of this size: take a "
                "larger ridge or a larger alpha"
            )
        return norm
