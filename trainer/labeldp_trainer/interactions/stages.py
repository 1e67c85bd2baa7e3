"""Learning a model of interactions in stages: what is asked of labels next, from what is known.

Every question is about a histogram, or is a sum of public rows times labels (or clipped residuals).
A source answers: with noise (``staged_release``), exactly (``none``), or from labels that are
private already (``privatized``). What is decided between questions is a function of public features
and of earlier answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32, Float64, UInt8

from labeldp_trainer.interactions.answers import Answers, AnswerSums, Working
from labeldp_trainer.interactions.columns import BinnedColumn
from labeldp_trainer.interactions.evidence import (
    Coefficients,
    NoisySums,
    Outputs,
    Uncertainty,
    by_column,
    coefficients,
    likeliest_factors,
    variances_by_evidence,
)
from labeldp_trainer.interactions.questions import (
    DesignMoments,
    FirstGuess,
    Guess,
    LabelQuestion,
    MeanCurve,
    Offset,
    Source,
    design_moments,
    row_weights,
)
from labeldp_trainer.interactions.terms import MOST_WEIGHT, Term, Terms
from labeldp_trainer.interactions.variances import (
    expected_variances,
    together,
    variances_by_heredity,
)

STAGES = 4
_QUANTILE = 0.5  # of the lengths of rows: shorter ones are not made longer
_MOST_COLUMNS = 2600  # of a design
_TOP = 12  # columns that may be in pairs
_STRONGEST_PAIRS, _STRONGEST_COLUMNS = 5, 6  # that triples are made of
_LEAST_MAIN, _LEAST_OTHER = 1e-6, (3e-4, 5e-4, 5e-4)  # of all variance, for a term to stay
_CONSTANT = 10.0  # prior variance of the constant, in variances of labels
_FURTHEST_STEP, _FURTHEST_ODDS = 2.0, 8.0  # of log-odds
_LEAST_SPREAD = {True: 0.1, False: 0.01}  # of the variance of classes, and of numbers


@dataclass(frozen=True)
class Fit:
    """The learned model.

    Attributes:
        terms: with coefficients.
        moments: of their columns.
        found: the coefficients of centred and scaled columns.
        base: [K] a prediction without features.
        scales: [K] variances of outputs, relative to one another.
        spread: variance that the model does not explain.
        uncertainty: mean variance of a prediction.
        answers: that all of it follows from.
        curve: from predictions to mean labels; None if they are the same.
    """

    terms: Terms
    moments: DesignMoments
    found: Coefficients
    base: Float64[np.ndarray, " k"]
    scales: Float64[np.ndarray, " k"]
    spread: float
    uncertainty: float
    answers: Answers
    curve: MeanCurve | None = None

    def raw(self) -> tuple[Float64[np.ndarray, "w k"], Float64[np.ndarray, " k"]]:
        """Coefficients of the integer columns, and what comes to the base."""
        weights, constant = self.moments.raw(self.found.mean)
        return weights, self.base + constant

    @property
    def explained(self) -> float:
        """Mean variance of predictions over the rows."""
        mean, gram = self.found.mean[1:], self.moments.gram[1:, 1:]
        return float(np.einsum("wk,wk->k", mean, gram @ mean).mean())


@dataclass(frozen=True)
class _Model:
    """The targets of a stage.

    Attributes:
        terms: of it.
        moments: of their columns.
        prior: [G] variances of the coefficients of terms, before they are found.
        kinds: [G] of terms that are alike: new ones are a kind of their own.
        base: [K] a prediction without features.
        constant: prior variance of the constant.
    """

    terms: Terms
    moments: DesignMoments
    prior: Float64[np.ndarray, " g"]
    kinds: Sequence[int]
    base: Float64[np.ndarray, " k"]
    constant: float

    def fitted(self, answers: Answers, evidence: NoisySums, *, searched: bool, last: bool) -> Fit:
        """To answers, and what they say of the terms; ``last``: nothing is asked after it."""
        term_of, constant, probability = self.terms.term_of, self.constant, 1.0
        there = bool(self.terms.chosen)
        by_heredity = there and last and not searched
        if not there:
            variances = self.prior
        elif by_heredity:
            if len(self.base) > 2:
                evidence = together(evidence, by_column(self.prior, term_of, constant), self.base)
            chosen = self.terms.chosen
            variances = variances_by_heredity(evidence, chosen, term_of, self.prior, constant)
        else:
            variances = variances_by_evidence(
                evidence, term_of, self.prior, self.kinds, constant, searched=searched
            )
        if by_heredity or (
            there and searched
        ):  # noise alone looks like effects, too: all together, or none
            alike = np.zeros(len(variances), np.int64)
            factors, probability = likeliest_factors(evidence, term_of, variances, alike, constant)
            variances = variances * factors
        found = coefficients(evidence, term_of, variances, constant, probability)
        uncertainty = found.uncertainty
        if by_heredity:
            wider = expected_variances(uncertainty, term_of, variances)
            uncertainty = evidence.uncertainty(by_column(wider, term_of, constant))
        left = uncertainty.over(self.moments.gram)
        scales, spread = evidence.outputs.scales, evidence.spread
        return Fit(self.terms, self.moments, found, self.base, scales, spread, left, answers)


@dataclass(frozen=True)
class _Left:
    """The part of labels that terms do not explain.

    Attributes:
        spread: variance, without that of randomizing.
        clip: where residuals are clipped.
        shared: the part of the spread that numbers of rows have in common which no bin tells apart.
    """

    spread: float
    clip: float
    shared: float = 0.0


@dataclass(frozen=True)
class _Point:
    """Log-odds of all rows, around which the logistic model is linear.

    Attributes:
        base: of a row without features.
        odds: [n] their logarithms.
    """

    base: float
    odds: Float64[np.ndarray, " n"]

    @classmethod
    def start(cls, shares: Float64[np.ndarray, " 2"], n: int) -> _Point:
        """Those of the shares of the classes."""
        base = float(np.log(shares[1] / shares[0]))
        return cls(base, np.full(n, base))

    @property
    def slope(self) -> float:
        """Mean slope of the probability."""
        return float(_slope(self.odds).mean())

    @property
    def variance(self) -> float:
        """That log-odds may have, roughly."""
        return 1 / float(_slope(np.array([self.base]))[0])

    @property
    def working(self) -> Working:
        """The tangent at these log-odds; predictors are relative to the base."""
        slope = _slope(self.odds)
        response = 1 / (1 + np.exp(-self.odds)) - slope * (self.odds - self.base)
        return Working(slope.astype(np.float32), response.astype(np.float32))

    def moved(self, fit: Fit) -> _Point:
        """Towards what was fitted, a bounded step."""
        weights, base = fit.raw()
        found = fit.terms.weighted(weights[:, 0]) + base
        step = np.clip(found - self.odds, -_FURTHEST_STEP, _FURTHEST_STEP)
        return _Point(self.base, np.clip(self.odds + step, -_FURTHEST_ODDS, _FURTHEST_ODDS))


def _slope(odds: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """p·(1 − p)."""
    p = 1 / (1 + np.exp(-odds))
    return np.asarray(p * (1 - p))


@dataclass(frozen=True)
class Learner:
    """Learns from a table's public columns and a source of answers.

    Attributes:
        columns: of the table.
        codes: [n, columns] bins.
        source: of answers.
        factors: [n] how much a row counts.
        order: most columns in a term, if there are rows enough.
        stage_done: called with the number of stages that are done.
    """

    columns: Sequence[BinnedColumn]
    codes: UInt8[np.ndarray, "n c"]
    source: Source
    factors: Float32[np.ndarray, " n"]
    order: int = 3
    stage_done: Callable[[int], None] = lambda stage: None

    def learn(self) -> Fit:
        """All stages."""
        labels = self.source.labels()
        base, left = labels.base, _Left(labels.variance, labels.clip)
        table = Terms(self.columns, self.codes, ())
        answers = Answers(table, self.factors, self.source.visible)
        # the logarithm of the odds of the second of two classes is learned
        logistic = labels.ends is None and len(base) == 2
        point = _Point.start(base, len(self.codes)) if logistic else None
        variance, start = labels.variance, base
        if point is not None:
            variance, start = point.variance, np.array([point.base])
        offset = _offset(None, labels)
        exposure = self.source.exposure
        exposed = None if exposure is None else Working(exposure, None)
        chosen, known = self._first(), dict[Term, float]()
        sums: AnswerSums | None = None
        for stage in range(STAGES):
            terms = self._limited(chosen)
            moments = design_moments(terms)
            prior = _prior(terms.chosen, known, stage, variance, left.spread, self.source.guess)
            kinds = [t.size + 10 * (bool(known) and t not in known) for t in terms.chosen]
            model = _Model(terms, moments, prior, kinds, start, _CONSTANT * variance)
            working = exposed if point is None else point.working
            unknown = Uncertainty.before(by_column(prior, terms.term_of, variance))
            if answers.found:
                sums = answers.sums(terms, working, sums)
                evidence = self._evidence(answers, sums, moments, labels, left, point)
                unknown = evidence.uncertainty(unknown.prior)
            rows = row_weights(
                terms,
                moments,
                unknown,
                self.source.noise(left.clip) / (1.0 if point is None else point.slope),
                most=self.source.most_sums,
                power=self.source.guess.powers[stage],
                quantile=_QUANTILE,
            )
            asked = LabelQuestion(terms.chosen, rows, offset, left.clip)
            answers.ask(self.source, asked)
            sums = answers.sums(terms, working, sums)
            evidence = self._evidence(answers, sums, moments, labels, left, point)
            last, searched = stage == STAGES - 1, self.source.visible
            fit = model.fitted(answers, evidence, searched=searched, last=last)
            # answers are fitted again, with what was found from the first fit
            for _ in range(int(logistic or (self.source.visible and last))):
                if point is not None:  # around what has been learned, once more
                    point = point.moved(fit)
                    sums = answers.sums(terms, point.working)
                else:
                    left = self._left(fit, _offset(fit, labels), labels, variance)
                evidence = self._evidence(answers, sums, moments, labels, left, point)
                fit = model.fitted(answers, evidence, searched=searched, last=last)
            self.stage_done(stage + 1)
            if stage < STAGES - 1:
                point = point and point.moved(fit)
                offset = _offset(fit, labels)
                left = self._left(fit, offset, labels, variance)
                known = dict(zip(terms.chosen, fit.found.variances.tolist(), strict=True))
                chosen, known = _refined(self._next(stage, known), known, self.source.refined)
        final = _offset(fit, labels)
        curve = None if final is None else self.source.curve(final, left.spread)
        return replace(fit, spread=left.spread, curve=curve)

    @property
    def _order(self) -> int:
        """Noise hides pairs and triples of rows that are so few that no term is refined."""
        return self.order if self.source.refined else 1

    @property
    def _names(self) -> list[int]:
        if not self.source.guess.mains:
            return []
        return [c for c, column in enumerate(self.columns) if column.rank]

    def _pairs(self) -> list[Term]:
        names = self._names
        return [Term((a, b)) for i, a in enumerate(names) for b in names[i + 1 :]]

    def _first(self) -> list[Term]:
        """Main effects, and all pairs where there are few."""
        mains = [Term((c,)) for c in self._names]
        few = self._order > 1 and len(mains) <= _TOP
        return mains + self._pairs() if few else mains

    def _limited(self, chosen: list[Term]) -> Terms:
        """The first of these terms that fit into a design."""
        terms = Terms(self.columns, self.codes, tuple(chosen))
        room = np.cumsum([1, *terms.widths])[1:] <= _MOST_COLUMNS
        return terms.of(tuple(term for term, fits in zip(chosen, room, strict=True) if fits))

    def _evidence(
        self,
        answers: Answers,
        sums: AnswerSums,
        moments: DesignMoments,
        labels: FirstGuess,
        left: _Left,
        point: _Point | None,
    ) -> NoisySums:
        base = labels.base
        alone = Outputs.of_model(np.ones(1))
        cross = (sums.cross - sums.slope[:, None] * moments.mean[None, :]) * moments.scale[None, :]
        if point is not None:
            # of two classes the sums add up to a public number, so that both tell of the second
            both = answers.statistic()
            second = (both[:, 1] - both[:, 0] + sums.total)[:, None] / 2
            noise = np.diag(answers.noise() / 2) + self.source.extra * sums.alike
            seen = second + sums.offset[:, None]
            return NoisySums(seen, cross, noise, sums.gram, 1.0, alone)
        seen = answers.statistic() + sums.offset[:, None] - sums.slope[:, None] * base[None, :]
        noise = np.diag(answers.noise()) + self.source.extra * sums.gram
        if labels.ends is not None:
            noise += left.shared * sums.alike
            own = left.spread - left.shared
            return NoisySums(seen, cross, noise, sums.gram, own, alone)
        scales = base * (1 - base)
        outputs = Outputs.of_model(scales / scales.mean())
        return NoisySums(seen, cross, noise, sums.gram, left.spread, outputs)

    def _left(self, fit: Fit, offset: Offset | None, labels: FirstGuess, variance: float) -> _Left:
        """The variance that is not explained, and where residuals are clipped next."""
        least = _LEAST_SPREAD[offset is None] * variance
        if offset is None:
            return _Left(max(variance - fit.explained - fit.uncertainty, least), labels.clip)
        found = self.source.residuals(offset)
        # of labels that were fitted, residuals are smaller than others
        more = fit.uncertainty if self.source.visible else -fit.uncertainty
        spread = max(min(found.square, variance) - self.source.extra + more, least)
        shared = min(max(found.shared + more, 0.0), spread - least / 2)
        clip = min(found.clip, 2 * labels.clip)  # predictions may be at either end
        return _Left(spread, clip, shared if found.shared else 0.0)

    def _next(self, stage: int, known: Mapping[Term, float]) -> list[Term]:
        """The terms of the stage after this one."""
        total, least = sum(known.values()), _LEAST_OTHER[stage]
        importance = dict.fromkeys(self._names, 0.0)
        for term, value in known.items():
            for c in term.columns:
                importance[c] += value
        best = sorted(self._names, key=lambda c: -importance[c])
        if stage == 0:
            kept = [t for t in known if t.size == 1 or known[t] > least * total]
            top = set(best[:_TOP])
            new = [p for p in self._pairs() if set(p.columns) <= top and p not in known]
            # the strongest first, if there is no room for all
            new.sort(key=lambda p: sum(map(best.index, p.columns)))
            return kept + (new if self._order > 1 else [])
        kept = [t for t, v in known.items() if v > (_LEAST_MAIN if t.size == 1 else least) * total]
        pairs = sorted((t for t in kept if t.size == 2), key=lambda t: -known[t])
        triples = {
            Term(tuple(sorted((*pair.columns, c))))
            for pair in pairs[:_STRONGEST_PAIRS]
            for c in best[:_STRONGEST_COLUMNS]
            if c not in pair.columns
        }
        return kept + (sorted(triples - set(known)) if self._order > 2 else [])


def _offset(fit: Fit | None, labels: FirstGuess) -> Offset | None:
    """The prediction of a fit, or of none; None of classes."""
    if labels.ends is None:
        return None
    if fit is None:
        return Offset((), np.zeros(1, np.int32), 0.0, float(labels.base[0]), labels.ends)
    weights, moved = fit.raw()
    unit = float(np.abs(weights).max()) / MOST_WEIGHT or 1.0
    whole = np.rint(weights[:, 0] / unit).astype(np.int32)
    return Offset(fit.terms.chosen, whole, unit, float(moved[0]), labels.ends)


def _refined(
    chosen: Sequence[Term], known: Mapping[Term, float], most: int
) -> tuple[list[Term], dict[Term, float]]:
    """With more functions in the strongest main effects and pairs, and what is known of them."""
    coarse = sorted((t for t in chosen if t in known and not t.fine), key=lambda t: -known[t])
    strongest = [t for size in (1, 2) for t in [t for t in coarse if t.size == size][:most]]
    finer = {term: replace(term, fine=True) for term in strongest}
    return [finer.get(t, t) for t in chosen], {finer.get(t, t): v for t, v in known.items()}


def _prior(
    chosen: Sequence[Term],
    known: Mapping[Term, float],
    stage: int,
    variance: float,
    spread: float,
    guess: Guess,
) -> Float64[np.ndarray, " g"]:
    """[G] prior variances of the columns of terms before a stage's answer."""
    if not known:
        main = np.array([term.size == 1 for term in chosen], bool)
        shares = guess.mains / max(main.sum(), 1), guess.interactions / max((~main).sum(), 1)
        return np.asarray(variance * np.where(main, *shares))
    new = [term for term in chosen if term not in known]
    share = guess.new[stage - 1] * spread / max(len(new), 1)
    return np.array([known.get(term, share) for term in chosen])
