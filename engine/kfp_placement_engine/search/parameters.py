"""Parameters of the search: what each means, the shipped values, and what the kernel takes."""

from dataclasses import dataclass, fields

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.problem import PlacementProblem

_MAY_BE_ZERO = ("exact_below", "generations")
"""Parameters with whole numbers that may be 0; the others are at least 1."""


@dataclass(frozen=True)
class GeneticParams:
    """Parameters of the search.

    Attributes:
        variant: `memetic` (the default search) or `paper` (see `paper()`).
        population_size: individuals on each island.
        islands: populations that search separately, each on a core where there are enough; the best
            plan wins. Their number, not that of the threads, is part of the plan's identity.
        restart_after: schedules without an improvement, per gene (a step whose node the plan
            decides, or several that share one), after which an island starts again; the best plan
            is kept.
        crossover_rate: share of children that mix two parents.
        joint_crossover_rate: crossover rate for several runs that are planned together.
        window_share: share of the mixed children that take all of a stretch of time from the second
            parent (only for one run under `ordered`).
        serial_share: share of children decoded serially, with insertion into gaps of the past, and
            justified (only for one run under `ordered` without limits of what is under way); they
            count as three schedules.
        moved_share: share of the serially decoded children whose steps may go to other nodes, where
            they end first; each with a probability that is drawn for the child. Only where plans
            that complete earlier are better in any case.
        greedy_share: share of children decoded by list scheduling, of those that are not decoded
            serially; the others are decoded by backfilling (`ordered` dispatch only).
        deadline_share: share of children in which all that starts in a stretch of time is placed
            again, each step on the slowest node where it is in time for a deadline that is drawn
            (one run under `ready` only). Only where plans that complete earlier are better in any
            case.
        most_moves: largest number of mutations per child.
        exact_below: number of plans up to which all plans are tried instead; 0 = never.
        generations, mutation_rate: length and share of mutations of the paper's algorithm; the
            default search does not use them.
    """

    variant: str = "memetic"
    population_size: int = 16
    islands: int = 1
    restart_after: int = 250
    crossover_rate: float = 0.5
    joint_crossover_rate: float = 0.15
    window_share: float = 1.0
    serial_share: float = 0.75
    moved_share: float = 0.5
    greedy_share: float = 0.1
    deadline_share: float = 0.5
    most_moves: int = 4
    exact_below: int = 20_000
    generations: int = 1_000
    mutation_rate: float = 0.2

    def __post_init__(self) -> None:
        """Refuse values that a search cannot use."""
        if self.variant not in ("memetic", "paper"):
            raise PlanningError(f"search variant {self.variant!r}; choose memetic or paper")
        for each in fields(self):
            value, least = getattr(self, each.name), 0 if each.name in _MAY_BE_ZERO else 1
            if isinstance(each.default, float) and not 0 <= value <= 1:
                raise PlanningError(f"{each.name} = {value!r}; it must lie between 0 and 1")
            if isinstance(each.default, int) and not (isinstance(value, int) and value >= least):
                raise PlanningError(
                    f"{each.name} = {value!r}; it must be a whole number, {least} or more"
                )

    @classmethod
    def paper(cls) -> "GeneticParams":
        """Return the parameters for the genetic algorithm of the paper on ML tasks on Kubernetes.

        The paper leaves some choices open, which are made here: population 50, 1,000 generations,
        mutation rate (alpha) 0.2, binary tournaments, the best individual kept, random repair of
        nodes that a step may not take, and a decoder (list scheduling in gene order with capacity),
        without which plans have no times.
        """
        return cls(variant="paper", population_size=50, islands=1, exact_below=0)

    def kernel_parameters(self, problem: PlacementProblem) -> native.SearchParameters:
        """Return the parameters that the kernel uses for a problem.

        Serial decoding, and justification with it, is for one run without limits of how much is
        under way at once. Justification makes the latest end earlier, but not the end of each run:
        with several runs it moves the steps of the first ones back. Serial decoding does not know
        these limits: the simulation of what it decodes would differ much.
        """
        arrays = problem.arrays
        is_one = arrays.run_weight.size == 1
        is_ordered = problem.dispatch == "ordered"
        is_one_in_order = is_one and is_ordered
        is_early_better = problem.is_completion_first
        # Deadlines are drawn by the completion, which is unknown for a run without weight.
        has_deadlines = is_one and not is_ordered and bool(arrays.run_weight[0] > 0)
        is_serial = is_one_in_order and arrays.limit_most.size == 0
        return native.SearchParameters(
            crossover_rate=self.crossover_rate if is_one else self.joint_crossover_rate,
            window_share=self.window_share if is_one_in_order else 0.0,
            serial_share=self.serial_share if is_serial else 0.0,
            moved_share=self.moved_share if is_early_better else 0.0,
            greedy_share=self.greedy_share,
            deadline_share=self.deadline_share if is_early_better and has_deadlines else 0.0,
            most_moves=self.most_moves,
        )
