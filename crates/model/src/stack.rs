//! The documents about what a server runs on: the stack itself, the judgement of it, and how two of them differ.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Finding;

/// Name and version of the stack document's schema.
pub const STACK_SCHEMA: &str = "shakedown.stack/1";
/// Name and version of the schema of a judged stack.
pub const STACK_CHECK_SCHEMA: &str = "shakedown.stack-check/1";
/// Name and version of the schema of the difference of two stacks.
pub const STACK_DIFF_SCHEMA: &str = "shakedown.stack-diff/1";

/// What a package or a library is there for, in the order in which differences of it tend to matter.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StackGroup {
    /// The serving software itself.
    Engine,
    /// Files changed by hand, hooks that run at every start, checkouts.
    Patches,
    /// Environment variables.
    Settings,
    /// Compute kernels.
    Kernels,
    /// Attention kernels.
    Attention,
    /// Collectives between GPUs.
    Collectives,
    /// The tensor framework.
    Framework,
    /// CUDA libraries: runtime, BLAS, DNN, NVRTC.
    Cuda,
    /// Compilers, of the machine and of the framework.
    Compiler,
    /// The GPU driver.
    Driver,
    /// The GPUs.
    Gpu,
    /// Model and tokenizer code.
    Model,
    /// Python itself.
    Python,
    /// The machine.
    Host,
    /// Everything else.
    #[default]
    Other,
}

/// Where a stack was read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackSource {
    /// The environment's prefix or the binary, as seen inside the root.
    pub path: String,
    /// The root, where it is not the machine's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The process, where a running one was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// The interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackPython {
    /// Version, as exact as the files tell.
    pub version: String,
    /// The executable, links followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<String>,
    /// `sys.prefix`.
    pub prefix: String,
    /// `sys.base_prefix`, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_prefix: Option<String>,
    /// `sys.path` as the files define it.
    pub path: Vec<String>,
}

/// Where a package came from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum PackageOrigin {
    /// A package index, as far as the files tell.
    #[default]
    Index,
    /// A file behind a URL.
    Archive {
        /// The URL, credentials masked.
        url: String,
    },
    /// A version control checkout that was built and installed.
    Vcs {
        /// The URL, credentials masked.
        url: String,
        /// The commit.
        commit: String,
    },
    /// A local directory that was built and installed: later edits there have no effect, and edits before cannot be seen.
    Directory {
        /// The URL of the directory.
        url: String,
    },
    /// A local directory that is used in place.
    Editable {
        /// The URL of the directory.
        url: String,
    },
}

/// GPU code of one file: architecture numbers as in `sm_120`, and how many pieces of code there are for each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GpuCodeOf {
    /// The file, relative to its site directory.
    pub file: String,
    /// Machine code.
    pub cubins: BTreeMap<u32, u64>,
    /// Intermediate code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ptx: BTreeMap<u32, u64>,
}

/// One installed package.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackPackage {
    /// Name, normalized.
    pub name: String,
    /// Version, with its local tag.
    pub version: String,
    /// What it is there for.
    pub group: StackGroup,
    /// Where it came from.
    pub origin: PackageOrigin,
    /// The program that installed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installer: Option<String>,
    /// The directory of the search path that it lies in.
    pub site: String,
    /// GPU code in its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_code: Vec<GpuCodeOf>,
}

/// A native library that matters, and which of its copies is the one that is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackLibrary {
    /// What it is, for example `cudnn`.
    pub name: String,
    /// SONAME or file name.
    pub soname: String,
    /// Version, as exact as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The file.
    pub path: String,
    /// The package that owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// How it is known that this copy wins: mapped by the process, or by the loader's rules.
    pub mapped: bool,
    /// Other copies that lose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadowed: Vec<String>,
}

/// A CUDA toolkit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackToolkit {
    /// Its directory.
    pub path: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What selects it: `CUDA_HOME`, `PATH`, the link `/usr/local/cuda`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selected_by: Vec<String>,
    /// Whether it has a compiler.
    pub nvcc: bool,
}

/// A program that the stack uses at run time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackTool {
    /// Its name, for example `nvcc`.
    pub name: String,
    /// The file.
    pub path: String,
    /// Its version, where a file tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The GPU driver.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackDriver {
    /// Version of the kernel module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Version of the user-space library `libcuda`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Where that library lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_path: Option<String>,
    /// The newest CUDA that it runs, as `major.minor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackGpu {
    /// Number, as the driver counts.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Compute capability as in `sm_120`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm: Option<u32>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// PCIe generation now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_gen: Option<u32>,
    /// PCIe lanes now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_width: Option<u32>,
    /// PCI address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<String>,
}

/// The machine, as far as serving on it is concerned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackHost {
    /// Operating system, as it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Kernel release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Kind of processor, for example `x86_64`.
    pub machine: String,
    /// C library version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glibc: Option<String>,
    /// CPU model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// CPUs.
    pub cpus: u32,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// CPU frequency governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Size of `/dev/shm` in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shm_mib: Option<u64>,
    /// Whether the IOMMU is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iommu: Option<bool>,
    /// Limits of the process: open files, locked memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// The kind of container, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// What kind of code runs at every start of the interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StackHookKind {
    /// `sitecustomize.py`.
    Sitecustomize,
    /// `usercustomize.py`.
    Usercustomize,
    /// A line of a `.pth` file that is executed.
    PthLine,
    /// A library in `LD_PRELOAD`.
    Preload,
}

/// Code that runs at every start of the interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackHook {
    /// What it is.
    pub kind: StackHookKind,
    /// The file.
    pub path: String,
    /// The line, where it is one of many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The code, shortened.
    pub text: String,
    /// The package that brought it; absent: nobody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// SHA-256 of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What happened to a file since it was installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Its contents are not those of the wheel.
    Modified,
    /// It belongs to no wheel.
    Added,
    /// The wheel has it, the disk has not.
    Missing,
}

/// A file that is not as its package installed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackChange {
    /// The package; absent for a file beside all packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The file, relative to its site directory.
    pub path: String,
    /// What happened.
    pub kind: ChangeKind,
    /// SHA-256 of the file now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Lines added, where the original was at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Lines removed, where the original was at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// Unified diff, where the original was at hand; bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// A git checkout that a package is used from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackCheckout {
    /// The package.
    pub package: String,
    /// The working tree.
    pub path: String,
    /// The commit that is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The nearest tag behind the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Commits since that tag: short hash and subject, newest first; bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits_after_tag: Vec<String>,
    /// Number of commits since that tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// Tracked files that differ from what is staged or committed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirty: Vec<StackChange>,
    /// Files that are not tracked; bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untracked: Vec<String>,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unread {
    /// What it is.
    pub what: String,
    /// Why.
    pub why: String,
}

/// All that a server runs on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// [`STACK_SCHEMA`].
    pub schema: String,
    /// SHA-256 over what affects the server; two stacks with the same one serve alike.
    pub fingerprint: String,
    /// Where it was read.
    pub source: StackSource,
    /// The interpreter; absent for a binary engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<StackPython>,
    /// The packages, by name.
    pub packages: Vec<StackPackage>,
    /// The native libraries that matter.
    pub libraries: Vec<StackLibrary>,
    /// CUDA toolkits.
    pub toolkits: Vec<StackToolkit>,
    /// Programs that are used at run time.
    pub tools: Vec<StackTool>,
    /// The driver.
    pub driver: StackDriver,
    /// The GPUs.
    pub gpus: Vec<StackGpu>,
    /// How the GPUs are linked, as the driver's topology table has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// The machine.
    pub host: StackHost,
    /// Environment variables that matter, secrets masked.
    pub environment: BTreeMap<String, String>,
    /// Code that runs at every start.
    pub hooks: Vec<StackHook>,
    /// Files changed by hand.
    pub changes: Vec<StackChange>,
    /// Checkouts that packages are used from.
    pub checkouts: Vec<StackCheckout>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// Whether an extension would load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loads {
    /// Every library, version and symbol is found. The ABI may still not fit.
    Yes,
    /// The loader would refuse it.
    No,
    /// It is not known what is loaded before it, or something could not be read.
    Unknown,
}

/// What the loader would do with one extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExtensionVerdict {
    /// The package.
    pub package: String,
    /// The file, relative to its site directory.
    pub file: String,
    /// Whether it would load.
    pub loads: Loads,
    /// The load plan that was followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The files that loading it maps, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<String>,
    /// Why it would not, or why that is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// A finding about a stack, and its place among the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackFinding {
    /// The finding.
    pub finding: Finding,
    /// The one to mend first.
    pub primary: bool,
    /// Code of the finding that explains this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<String>,
}

/// The judgement of a stack.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackCheck {
    /// [`STACK_CHECK_SCHEMA`].
    pub schema: String,
    /// Fingerprint of the stack that was judged.
    pub fingerprint: String,
    /// The GPU architectures that it was judged for.
    pub gpus: Vec<u32>,
    /// The findings, the primary one first.
    pub findings: Vec<StackFinding>,
    /// The extensions, one by one.
    pub extensions: Vec<ExtensionVerdict>,
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackDifference {
    /// What it is.
    pub subject: String,
    /// Its value on the first side; absent: not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its value on the second side; absent: not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// What is known to follow from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
}

/// The differences of one group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackDiffGroup {
    /// The group.
    pub group: StackGroup,
    /// What differs.
    pub differences: Vec<StackDifference>,
}

/// How two stacks differ.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StackDiff {
    /// [`STACK_DIFF_SCHEMA`].
    pub schema: String,
    /// Fingerprint of the first stack.
    pub before: String,
    /// Fingerprint of the second.
    pub after: String,
    /// The groups that differ, those that could matter most first.
    pub groups: Vec<StackDiffGroup>,
}
