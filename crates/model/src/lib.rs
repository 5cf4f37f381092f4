//! The nouns that cross crates: plain data with serde and JSON schemas, and no I/O.
//!
//! A type belongs here when two crates need it; what one crate alone uses stays there. The words are those
//! of `docs/glossary.md`.

mod api;
mod comparison;
mod diagnosis;
mod engine;
mod exit;
mod finding;
mod found;
mod gate;
mod load;
mod metric;
mod metrics;
mod outcome;
mod request;
mod run;
mod secret;
mod stack;
mod time;
mod truth;
pub mod verb;
mod workload;

pub use api::Api;
pub use comparison::{
    AnswerComparison, AnswersVerdict, Basis, COMPARISON_SCHEMA, ComparedSide, Comparison, ComparisonUnit,
    Conclusion, Difference, DifferenceKind, Divergence, MetricComparison, MoreNeeded, Refusal, RefusalReason,
    RestartSource, RestartSpread, SpeedVerdict,
};
pub use diagnosis::{
    Consequence, Covered, DIAGNOSIS_SCHEMA, Diagnosed, DiagnosedState, Diagnosis, Provenance, RuledOut,
    StageSeen,
};
pub use engine::{Engine, EngineKind, EngineMetrics, InForce, Server, Setting};
pub use exit::Exit;
pub use finding::{Applicability, Confidence, Evidence, Finding, Fix, Verdict};
pub use found::{
    AddressReason, FIND_SCHEMA, Found, FoundAddress, FoundLog, FoundProcess, FoundServer, FoundWorker,
    ProcessPart, Reach, ServedModel, ServerState,
};
pub use gate::{GATE_SCHEMA, GateCheck, GateLimit, GateResult, GateVerdict, LimitError, OnUnknown};
pub use load::{Arrival, Load, Stop};
pub use metric::{Metric, MetricError, MetricFamily, MetricUnit, Statistic};
pub use metrics::{
    Acceptance, AcceptanceSource, CacheHits, ChunkSizes, ClientHealth, Distribution, Metrics, OutcomeCount,
    Percentile, Rate, ReadLag, Truth,
};
pub use outcome::{FinishReason, RequestOutcome, TokenSource};
pub use request::{Channel, Phase, PromptRef, RequestRecord, Stamps, TextRef, Tokens};
pub use run::{Client, LaunchRef, RUN_SCHEMA, RunDocument, RunEnd, Trial};
pub use secret::{MASK, Secret};
pub use stack::{
    ChangeKind, ExtensionVerdict, GpuCodeOf, Loads, PackageOrigin, STACK_CHECK_SCHEMA, STACK_DIFF_SCHEMA,
    STACK_SCHEMA, Stack, StackChange, StackCheck, StackCheckout, StackDiff, StackDiffGroup, StackDifference,
    StackDriver, StackFinding, StackGpu, StackGroup, StackHook, StackHookKind, StackHost, StackLibrary,
    StackPackage, StackPython, StackSource, StackTool, StackToolkit, Unread,
};
pub use time::Stamp;
pub use truth::{RequestEnd, RequestTruth, ServerTruth, TRUTH_CLOCK, TRUTH_SCHEMA, WriteKind, WritesTruth};
pub use workload::{PromptKind, PromptSource, Sampling, Workload};
