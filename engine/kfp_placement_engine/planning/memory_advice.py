"""What a step of a run should ask for instead, by the memory that past runs used."""

from dataclasses import dataclass

from kfp_placement_engine.contract.memory_texts import advised_bytes, memory_advice
from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import MemoryHistory
from kfp_placement_engine.model.run_graph import Step


@dataclass(frozen=True)
class MemoryAdvice:
    """Advice on the request of a step; nobody follows it but its author.

    Attributes:
        text: in words.
        amount_bytes: what to ask for.
        was_killed: its last run was killed for memory; otherwise it asks for too much.
    """

    text: str
    amount_bytes: int
    was_killed: bool


def advice_on(pipeline: str, step: Step, memory: MemoryHistory) -> MemoryAdvice | None:
    """What a step should ask for; None = it may as well ask for what it does.

    Args:
        pipeline: name of its pipeline.
        step: the step; a request is one for all iterations of a loop, whatever their sizes.
        memory: what past runs of its namespace used.
    """
    size = None if step.iteration_key else step.input_bytes
    found = memory.predict(step_identity(pipeline, step), size)
    asked = step.requests.get("memory")
    if found is None or (amount := advised_bytes(found, asked)) is None:
        return None
    was_killed = found.killed_bytes is not None
    return MemoryAdvice(memory_advice(found, asked), amount, was_killed)
