"""What components read and write where KFP would give them artifacts."""

from dataclasses import dataclass, field


@dataclass
class Artifact:
    """A file, and the metrics logged to it."""

    path: str
    metrics: dict[str, float] = field(default_factory=dict)

    def log_metric(self, name, value):
        self.metrics[name] = value
