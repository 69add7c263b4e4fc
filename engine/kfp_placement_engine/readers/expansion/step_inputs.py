"""Data that steps read: which outputs of which steps, and their sizes."""

from collections.abc import Mapping

from kfp_placement_engine.model.run_graph import DataInput
from kfp_placement_engine.readers.tree.values import Produced, Value


class DataIndex:
    """Index of the outputs of steps, for the data that other steps read.

    Artifacts always count as data. Parameters travel inside of KFP's messages and count only where
    they were given a size.
    """

    def __init__(self) -> None:
        self._output_bytes: dict[str, Mapping[str, int]] = {}
        # Wide loops that read one wide collection share one tuple; the value is kept
        # alive so that no other object gets its id.
        self._shared: dict[tuple[int, int | None], tuple[Value, tuple[DataInput, ...]]] = {}

    def add_producer(self, step: str, output_bytes: Mapping[str, int]) -> None:
        """Note the sizes of a step's outputs."""
        if output_bytes:
            self._output_bytes[step] = output_bytes

    def inputs(
        self,
        parameters: Mapping[str, Value],
        artifacts: Mapping[str, Value],
        input_bytes: Mapping[str, int],
    ) -> tuple[DataInput, ...]:
        """Return the data that a step reads.

        Args:
            parameters: values of its input parameters.
            artifacts: values of its input artifacts.
            input_bytes: sizes of inputs, from the step's own hints.
        """
        data: list[DataInput] = []
        for name in sorted(artifacts):
            value = artifacts[name]
            if isinstance(value, Produced):
                data.extend(self._produced(value, input_bytes.get(name)))
            else:
                data.append(DataInput("", name, input_bytes.get(name)))
        for name in sorted(parameters):
            value = parameters[name]
            if isinstance(value, Produced) and name not in artifacts:
                size = input_bytes.get(name)
                data.extend(entry for entry in self._produced(value, size) if entry.size_bytes)
        outside = set(input_bytes) - set(artifacts)
        outside -= {name for name, value in parameters.items() if isinstance(value, Produced)}
        data.extend(DataInput("", name, input_bytes[name]) for name in sorted(outside))
        return tuple(data)

    def _produced(self, value: Produced, given: int | None) -> tuple[DataInput, ...]:
        key = (id(value), given)
        if key not in self._shared:
            share = None if given is None else -(-given // len(value.sources))
            entries = tuple(
                DataInput(
                    step,
                    output,
                    self._output_bytes.get(step, {}).get(output) if share is None else share,
                )
                for step, output in value.sources
            )
            self._shared[key] = (value, entries)
        return self._shared[key][1]
