//! Every finding on an environment made for it: the fault is named, it is the primary cause, and nothing else is.

use shakedown_model::{Exit, Loads, Verdict};
use shakedown_stack::{Options, check};

use super::support::{Env, compile, fatbin, with_fatbin};

fn built(env: &Env, name: &str, source: &str, arguments: &[&str]) -> Vec<u8> {
    std::fs::read(compile(&env.dir.path().join("build"), name, source, arguments)).unwrap()
}

fn for_gpu(sm: u32) -> Options {
    Options {
        sm: vec![sm],
        ..Options::default()
    }
}

/// An environment with an extension module of a package whose modules load alone.
fn with_module(env: &Env, source: &str, arguments: &[&str]) {
    let module = built(env, "m.abi3.so", source, arguments);
    env.install(
        "orjson",
        "3.0",
        "",
        "cp311-abi3-linux_x86_64",
        &[("orjson/m.abi3.so", &module)],
    );
}

#[test]
fn a_healthy_environment_has_no_finding() {
    let env = Env::new();
    with_module(
        &env,
        "int PyModule_Create2(void); int PyInit_m(void){return PyModule_Create2();}",
        &[],
    );
    env.pure(
        "requests",
        "2.32.0",
        "Requires-Dist: urllib3>=2; python_version >= '3.8'\nRequires-Dist: win; os_name == 'nt'\n",
    );
    env.pure("urllib3", "2.1.0", "");
    let read = env.read(&[], for_gpu(120));
    assert_eq!(read.codes(), Vec::<&str>::new(), "{:#?}", read.check.findings);
    assert_eq!(check::exit(&read.check), Exit::Yes);
    assert_eq!(
        check::count(&read.check, Loads::Yes),
        1,
        "the interpreter's own symbols come from it"
    );
    assert!(read.primary().is_none());
}

#[test]
fn a_missing_library() {
    let env = Env::new();
    compile(
        &env.dir.path().join("build"),
        "libgone.so.7",
        "int gone(void){return 1;}",
        &["-Wl,-soname,libgone.so.7"],
    );
    let library = env.dir.path().join("build/libgone.so.7").display().to_string();
    with_module(&env, "int gone(void); int t(void){return gone();}", &[&library]);
    let read = env.read(&[], for_gpu(120));
    assert_eq!(read.codes(), ["stack-library-missing"]);
    let finding = read.primary().unwrap();
    assert!(finding.what.contains("libgone.so.7"), "{finding:?}");
    assert!(
        finding
            .evidence
            .iter()
            .any(|e| e.value.contains("DT_NEEDED libgone.so.7"))
    );
    assert_eq!(check::exit(&read.check), Exit::No);
}

#[test]
fn the_wrong_cuda_major() {
    let env = Env::new();
    let runtime = built(
        &env,
        "libcudart.so.12",
        "int cudaFree(void){return 0;}",
        &["-Wl,-soname,libcudart.so.12"],
    );
    env.install(
        "nvidia-cuda-runtime-cu12",
        "12.8.90",
        "",
        "py3-none-any",
        &[("nvidia/cuda_runtime/lib/libcudart.so.12", &runtime)],
    );
    compile(
        &env.dir.path().join("build"),
        "libcudart.so.13",
        "int cudaFree(void){return 0;}",
        &["-Wl,-soname,libcudart.so.13"],
    );
    let library = env.dir.path().join("build/libcudart.so.13").display().to_string();
    with_module(
        &env,
        "int cudaFree(void); int t(void){return cudaFree();}",
        &[&library],
    );
    let read = env.read(&[], for_gpu(120));
    let finding = read.primary().unwrap();
    assert_eq!(finding.code, "stack-library-wrong-major");
    assert!(
        finding.why.contains("CUDA 12") && finding.what.contains("libcudart.so.13"),
        "{finding:?}"
    );
    assert!(!finding.fixes.is_empty());
}

#[test]
fn an_undefined_symbol_is_named_as_it_is_written() {
    let env = Env::new();
    with_module(
        &env,
        "int _ZN3c105ErrorC1Ev(void); int t(void){return _ZN3c105ErrorC1Ev();}",
        &[],
    );
    env.pure("torch", "2.8.0", "");
    let read = env.read(&[], for_gpu(120));
    let finding = read.of("stack-symbol-undefined")[0];
    assert!(finding.what.contains("c10::Error::Error()"), "{finding:?}");
    assert!(finding.why.contains("another torch than 2.8.0"));
    assert!(
        finding
            .evidence
            .iter()
            .any(|e| e.value.contains("_ZN3c105ErrorC1Ev"))
    );
}

#[test]
fn a_pin_explains_the_symbol() {
    let env = Env::new();
    let module = built(
        &env,
        "m.abi3.so",
        "int _ZN3c105ErrorC1Ev(void); int t(void){return _ZN3c105ErrorC1Ev();}",
        &[],
    );
    env.install(
        "tokenizers",
        "1.0",
        "Requires-Dist: torch==2.9.1\n",
        "cp311-abi3-linux_x86_64",
        &[("tokenizers/m.abi3.so", &module)],
    );
    env.pure("torch", "2.8.0+cu128", "");
    let read = env.read(&[], for_gpu(120));
    assert_eq!(read.primary().unwrap().code, "stack-pin-conflict");
    let symbol = read
        .check
        .findings
        .iter()
        .find(|f| f.finding.code == "stack-symbol-undefined")
        .unwrap();
    assert_eq!(symbol.caused_by.as_deref(), Some("stack-pin-conflict"));
}

#[test]
fn a_version_that_the_library_lacks() {
    let env = Env::new();
    let build = env.dir.path().join("build");
    std::fs::create_dir_all(&build).unwrap();
    std::fs::write(build.join("v.map"), "OWN_2 { global: two; };\n").unwrap();
    let map = format!("-Wl,--version-script={}", build.join("v.map").display());
    compile(
        &build,
        "libown.so.1",
        "int two(void){return 2;}",
        &["-Wl,-soname,libown.so.1", &map],
    );
    let library = build.join("libown.so.1").display().to_string();
    let module = built(
        &env,
        "m.abi3.so",
        "int two(void); int t(void){return two();}",
        &[&library, "-Wl,-rpath,$ORIGIN"],
    );
    std::fs::write(build.join("v.map"), "OWN_1 { global: two; };\n").unwrap();
    compile(
        &build,
        "libown.so.1",
        "int two(void){return 2;}",
        &["-Wl,-soname,libown.so.1", &map],
    );
    let old = std::fs::read(build.join("libown.so.1")).unwrap();
    env.install(
        "orjson",
        "3.0",
        "",
        "cp311-abi3-linux_x86_64",
        &[("orjson/m.abi3.so", &module), ("orjson/libown.so.1", &old)],
    );
    let read = env.read(&[], for_gpu(120));
    let finding = read.primary().unwrap();
    assert_eq!(finding.code, "stack-version-missing");
    assert!(finding.what.contains("OWN_2"), "{finding:?}");
}

/// A library that needs a C library newer than any: the version's name is rewritten in the compiled file.
#[test]
fn a_c_library_that_is_too_old() {
    let env = Env::new();
    let mut module = built(
        &env,
        "m.abi3.so",
        "int puts(const char*); int t(void){return puts(\"\");}",
        &[],
    );
    let from = if cfg!(target_arch = "aarch64") {
        &b"GLIBC_2.17\0"[..]
    } else {
        &b"GLIBC_2.2.5\0"[..]
    };
    let to = if cfg!(target_arch = "aarch64") {
        &b"GLIBC_2.99\0"[..]
    } else {
        &b"GLIBC_2.9.9\0"[..]
    };
    let at = module
        .windows(from.len())
        .position(|w| w == from)
        .expect("the version's name");
    module[at..at + to.len()].copy_from_slice(to);
    env.install(
        "orjson",
        "3.0",
        "",
        "cp311-abi3-linux_x86_64",
        &[("orjson/m.abi3.so", &module)],
    );
    let read = env.read(&[], for_gpu(120));
    let finding = read.primary().unwrap();
    assert_eq!(finding.code, "stack-glibc-too-old", "{finding:?}");
    // The wheel's tag says it too, without looking into the file.
    let env = Env::new();
    env.install("orjson", "3.0", "", "cp311-abi3-manylinux_2_99_x86_64", &[]);
    let read = env.read(&[], for_gpu(120));
    if cfg!(target_arch = "x86_64") {
        assert_eq!(read.primary().unwrap().code, "stack-glibc-too-old");
    }
}

#[test]
fn gpu_code_that_does_not_cover_the_gpu() {
    let env = Env::new();
    let ops = built(
        &env,
        "ops.so",
        &with_fatbin(&fatbin(&[(2, 80), (2, 86), (2, 90)])),
        &[],
    );
    let ptx = built(&env, "ptx.so", &with_fatbin(&fatbin(&[(2, 80), (1, 80)])), &[]);
    env.install(
        "deep-gemm",
        "1.0",
        "",
        "py3-none-any",
        &[("deep_gemm/ops.so", &ops), ("deep_gemm/ptx.so", &ptx)],
    );
    let read = env.read(&[], for_gpu(120));
    let finding = read.of("stack-gpu-not-covered")[0];
    assert!(
        finding.what.contains("ops.so")
            && finding.what.contains("sm_120")
            && !finding.what.contains("ptx.so"),
        "{finding:?}"
    );
    assert!(finding.evidence[0].value.contains("80 86 90"));
    assert_eq!(read.of("stack-gpu-jit-only").len(), 1);
    // The same files on a GPU that they are for.
    let read = env.read(&[], for_gpu(89));
    assert!(read.of("stack-gpu-not-covered").is_empty() && read.of("stack-gpu-jit-only").is_empty());
}

#[test]
fn requirements_extras_and_what_is_missing() {
    let env = Env::new();
    env.pure("sglang", "0.5.30", "Requires-Dist: flashinfer-python[cu13]==0.6.3\nRequires-Dist: gone>=1; extra == 'dev'\nRequires-Dist: transformers\n");
    env.pure(
        "flashinfer-python",
        "0.6.4",
        "Requires-Dist: nvidia-cudnn-frontend>=1.9; extra == 'cu13'\n",
    );
    let read = env.read(&[], for_gpu(120));
    let conflict = read.of("stack-pin-conflict");
    assert_eq!(conflict.len(), 1);
    assert!(
        conflict[0].what.contains("0.6.3") && conflict[0].what.contains("0.6.4"),
        "{conflict:?}"
    );
    let missing: Vec<_> = read
        .of("stack-pin-missing")
        .iter()
        .map(|f| f.subject.clone())
        .collect();
    assert_eq!(
        missing,
        ["nvidia-cudnn-frontend", "transformers"],
        "an extra that is asked for counts, one that is not does not"
    );
}

#[test]
fn a_wheel_for_another_python() {
    let env = Env::new();
    env.install(
        "tiktoken",
        "0.1",
        "",
        "cp312-cp312-manylinux_2_28_x86_64",
        &[("tiktoken/__init__.py", b"")],
    );
    let read = env.read(&[], for_gpu(120));
    assert_eq!(read.primary().unwrap().code, "stack-python-tag");
    let env = Env::new();
    env.install(
        "xxhash",
        "0.1",
        "",
        "py3-none-any",
        &[("xxhash/_x.cpython-312-x86_64-linux-gnu.so", b"\x7fELF")],
    );
    let read = env.read(&[], for_gpu(120));
    assert!(read.of("stack-python-tag")[0].what.contains("Python 3.12"));
}

#[test]
fn the_flashinfer_trio_the_cudnn_check_and_a_cpu_torch() {
    let env = Env::new();
    env.pure("flashinfer-python", "0.6.4", "");
    env.pure("flashinfer-cubin", "0.6.3", "");
    env.pure("sglang", "0.5.9", "");
    env.pure("sgl-kernel", "0.3.21", "");
    env.pure("nvidia-cudnn-cu13", "9.13.0.50", "");
    env.install(
        "torch",
        "2.9.1+cu130",
        "",
        "py3-none-any",
        &[("torch/version.py", b"cuda: Optional[str] = '13.0'\n")],
    );
    let launch = |multimodal| Options {
        launch: Some(check::LaunchNeeds {
            multimodal: Some(multimodal),
            ..check::LaunchNeeds::default()
        }),
        ..for_gpu(120)
    };
    let read = env.read(&[], launch(true));
    assert!(read.of("stack-flashinfer-trio")[0].what.contains("0.6.3"));
    let cudnn = read.of("stack-cudnn-check")[0];
    assert_eq!(
        (cudnn.verdict, cudnn.subject.as_str()),
        (Verdict::Fail, "nvidia-cudnn-cu13")
    );
    assert!(
        cudnn.fixes[0]
            .command
            .as_deref()
            .unwrap()
            .contains("nvidia-cudnn-cu13==")
    );
    assert!(
        env.read(&[], launch(false)).of("stack-cudnn-check").is_empty(),
        "a text-only model is not affected"
    );

    let env = Env::new();
    env.pure("sgl-kernel", "0.3.21", "");
    env.install(
        "torch",
        "2.9.1+cpu",
        "",
        "py3-none-any",
        &[("torch/version.py", b"cuda = None\n")],
    );
    assert_eq!(env.read(&[], for_gpu(120)).of("stack-torch-cpu-only").len(), 1);
}

#[test]
fn an_extension_without_a_plan_is_unknown_and_never_fails() {
    let env = Env::new();
    let module = built(
        &env,
        "ops.abi3.so",
        "int nowhere(void); int t(void){return nowhere();}",
        &[],
    );
    env.install(
        "torch",
        "1.0.0",
        "",
        "py3-none-any",
        &[("torch/version.py", b"cuda = '11.8'\n")],
    );
    env.install(
        "sgl-kernel",
        "0.3.21",
        "",
        "py3-none-any",
        &[("sgl_kernel/sm100/common_ops.abi3.so", &module)],
    );
    let read = env.read(&[], for_gpu(120));
    assert!(read.of("stack-symbol-undefined").is_empty());
    let unknown = read.of("stack-load-unknown")[0];
    assert!(
        unknown.what.contains("no load plan is known for torch 1.0.0"),
        "{unknown:?}"
    );
    assert_eq!(check::count(&read.check, Loads::Unknown), 1);
    assert_eq!(check::exit(&read.check), Exit::NotEnoughEvidence);
}

#[test]
fn what_a_launch_asks_of_the_gpus() {
    let env = Env::new();
    env.pure("sglang", "0.5.30", "");
    let launch = |sm: u32, needs: check::LaunchNeeds| {
        let options = Options {
            launch: Some(needs),
            ..for_gpu(sm)
        };
        let read = env.read(&[], options);
        read.check
            .findings
            .iter()
            .filter(|f| f.finding.verdict == Verdict::Fail)
            .map(|f| f.finding.code.clone())
            .collect::<Vec<_>>()
    };
    let fusion = check::LaunchNeeds {
        allreduce_fusion: true,
        ..check::LaunchNeeds::default()
    };
    assert_eq!(launch(120, fusion.clone()), ["stack-allreduce-fusion"]);
    assert!(launch(90, fusion).is_empty());
    let fp8 = check::LaunchNeeds {
        fp8: true,
        torch_symm_mem: true,
        ..check::LaunchNeeds::default()
    };
    assert_eq!(launch(86, fp8.clone()), ["stack-fp8", "stack-symm-mem"]);
    assert!(launch(90, fp8).is_empty());
    let heads = check::LaunchNeeds {
        tp: Some(8),
        heads: Some(12),
        ..check::LaunchNeeds::default()
    };
    assert_eq!(launch(90, heads), ["stack-tp-heads"]);
}

#[test]
fn two_majors_in_one_process() {
    let env = Env::new();
    let dir = env.dir.path().join("build");
    for major in [12, 13] {
        compile(
            &dir,
            &format!("libcudart.so.{major}"),
            "int x(void){return 0;}",
            &[&format!("-Wl,-soname,libcudart.so.{major}")],
        );
    }
    // A plan's package that maps one major, and whose extension brings the other.
    let lib = |n: u32| std::fs::read(dir.join(format!("libcudart.so.{n}"))).unwrap();
    let (twelve, thirteen) = (lib(12), lib(13));
    let link = |n: u32| dir.join(format!("libcudart.so.{n}")).display().to_string();
    let deps = built(
        &env,
        "deps.so",
        "int d(void){return 0;}",
        &["-Wl,--no-as-needed", &link(12), "-Wl,-rpath,$ORIGIN"],
    );
    let core = built(&env, "core.so", "int c(void){return 0;}", &[]);
    let ops = built(
        &env,
        "ops.so",
        "int o(void){return 0;}",
        &["-Wl,--no-as-needed", &link(13), "-Wl,-rpath,$ORIGIN"],
    );
    env.install(
        "torch",
        "2.9.1",
        "",
        "py3-none-any",
        &[
            ("torch/version.py", b"cuda = '12.8'\n"),
            ("torch/lib/libtorch_global_deps.so", &deps),
            ("torch/lib/libcudart.so.12", &twelve),
            ("torch/_C.cpython-311-x86_64-linux-gnu.so", &core),
        ],
    );
    env.install(
        "sgl-kernel",
        "0.3.21",
        "",
        "py3-none-any",
        &[
            ("sgl_kernel/sm100/common_ops.abi3.so", &ops),
            ("sgl_kernel/sm100/libcudart.so.13", &thirteen),
        ],
    );
    let read = env.read(&[], for_gpu(120));
    let mixed = read.of("stack-cuda-majors-mixed");
    assert_eq!(mixed.len(), 1, "{:#?}", read.check);
    assert!(mixed[0].what.contains("12 and 13"));
}
