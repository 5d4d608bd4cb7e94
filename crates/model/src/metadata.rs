//! What a metric is, in words: its kind, help and unit, as exposition formats carry them.

/// The kind of a metric family, as OpenMetrics and remote write name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricKind {
    /// Not said.
    #[default]
    Unknown,
    /// Goes up, resets to zero.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative buckets.
    Histogram,
    /// Buckets of a gauge.
    GaugeHistogram,
    /// Quantiles computed by the client.
    Summary,
    /// A constant 1 whose labels carry information.
    Info,
    /// One series per state.
    StateSet,
}

impl MetricKind {
    /// The lower-case word that Prometheus' API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            MetricKind::Unknown => "unknown",
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
            MetricKind::GaugeHistogram => "gaugehistogram",
            MetricKind::Summary => "summary",
            MetricKind::Info => "info",
            MetricKind::StateSet => "stateset",
        }
    }

    /// The kind that the word names; unknown words are [`MetricKind::Unknown`].
    pub fn parse(word: &str) -> MetricKind {
        match word {
            "counter" => MetricKind::Counter,
            "gauge" => MetricKind::Gauge,
            "histogram" => MetricKind::Histogram,
            "gaugehistogram" => MetricKind::GaugeHistogram,
            "summary" => MetricKind::Summary,
            "info" => MetricKind::Info,
            "stateset" => MetricKind::StateSet,
            _ => MetricKind::Unknown,
        }
    }
}

/// What is known of one metric family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The family's name.
    pub metric: String,
    /// Its kind.
    pub kind: MetricKind,
    /// A sentence for people.
    pub help: String,
    /// The unit, such as `seconds`; often empty.
    pub unit: String,
}
