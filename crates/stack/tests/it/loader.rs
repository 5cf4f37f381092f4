//! The loader's rules, each against the real loader: what we choose is what a process maps.

use std::path::{Path, PathBuf};
use std::process::Command;

use shakedown_stack::Root;
use shakedown_stack::loader::{Fault, Process, Search};

use super::oracle::{Truth, ask, disagreement};
use super::support::compile;

fn python() -> Option<PathBuf> {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

/// Opens `file` in our process and in a real one; both must agree.
fn agree(file: &Path, variables: &[(&str, String)]) -> Option<(shakedown_stack::loader::Opened, Truth)> {
    let python = python()?;
    let value = |name: &str| {
        variables
            .iter()
            .find(|(k, _)| *k == name)
            .map(|(_, v)| v.as_str())
    };
    let search = Search::of_root(
        &Root::new("/"),
        if cfg!(target_arch = "aarch64") { 183 } else { 62 },
        value("LD_LIBRARY_PATH"),
    );
    let mut process = Process::new(Root::new("/"), search, &[]);
    let started = process.start(&python, value("LD_PRELOAD"));
    assert!(started.loads(), "{started:?}");
    let ours = process.open(&file.display().to_string(), false);
    let truth = ask(&python, "", file, variables).expect("the interpreter answers");
    assert_eq!(disagreement(&ours, &truth, None), None, "{ours:?}\n{truth:?}");
    Some((ours, truth))
}

#[test]
fn runpath_is_not_inherited_and_rpath_is() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("deep");
    compile(
        &deep,
        "libc3.so",
        "int c3(void){return 3;}",
        &["-Wl,-soname,libc3.so"],
    );
    let link = format!("-L{}", deep.display());
    // libb3 needs libc3 and has no path of its own.
    compile(
        &deep,
        "libb3.so",
        "int c3(void); int b3(void){return c3();}",
        &["-Wl,-soname,libb3.so", &link, "-lc3"],
    );
    for (tag, loads) in [("--disable-new-dtags", true), ("--enable-new-dtags", false)] {
        let tag = format!("-Wl,{tag}");
        let top = compile(
            dir.path(),
            "top.so",
            "int b3(void); int t(void){return b3();}",
            &[
                &tag,
                "-Wl,-rpath,$ORIGIN/deep",
                &link,
                "-lb3",
                "-Wl,--allow-shlib-undefined",
            ],
        );
        let Some((ours, truth)) = agree(&top, &[]) else {
            return;
        };
        assert_eq!(ours.loads(), loads, "{tag}");
        assert_eq!(truth.error.is_none(), loads);
        let missing =
            matches!(ours.faults.first(), Some(Fault::Missing { library, .. }) if library == "libc3.so");
        assert_eq!(missing, !loads);
    }
}

#[test]
fn library_path_comes_before_runpath_and_after_rpath() {
    let dir = tempfile::tempdir().unwrap();
    for place in ["own", "other"] {
        compile(
            &dir.path().join(place),
            "libd4.so",
            "int d4(void){return 4;}",
            &["-Wl,-soname,libd4.so"],
        );
    }
    let link = format!("-L{}", dir.path().join("own").display());
    let other = dir.path().join("other").display().to_string();
    for (tag, chosen) in [("--disable-new-dtags", "own"), ("--enable-new-dtags", "other")] {
        let tag = format!("-Wl,{tag}");
        let top = compile(
            dir.path(),
            "top4.so",
            "int d4(void); int t(void){return d4();}",
            &[&tag, "-Wl,-rpath,$ORIGIN/own", &link, "-ld4"],
        );
        let Some((ours, _)) = agree(&top, &[("LD_LIBRARY_PATH", other.clone())]) else {
            return;
        };
        let real = std::fs::canonicalize(dir.path().join(chosen).join("libd4.so")).unwrap();
        assert!(ours.new.iter().any(|(_, r)| *r == real), "{tag}: {ours:?}");
    }
}

#[test]
fn undefined_and_weak_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let strong = compile(
        dir.path(),
        "strong.so",
        "int nowhere_5(void); int t(void){return nowhere_5();}",
        &[],
    );
    let Some((ours, _)) = agree(&strong, &[]) else {
        return;
    };
    assert!(
        matches!(ours.faults.as_slice(), [Fault::Undefined { symbol, .. }] if symbol == "nowhere_5"),
        "{ours:?}"
    );
    let weak = compile(
        dir.path(),
        "weak.so",
        "__attribute__((weak)) int nowhere_6(void); int t(void){return nowhere_6 ? 1 : 0;}",
        &[],
    );
    let (ours, _) = agree(&weak, &[]).unwrap();
    assert!(ours.loads(), "{ours:?}");
    // Data is looked up like functions.
    let data = compile(
        dir.path(),
        "data.so",
        "extern int nowhere_7; int t(void){return nowhere_7;}",
        &[],
    );
    assert!(!agree(&data, &[]).unwrap().0.loads());
}

#[test]
fn versions_of_libraries_and_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("v.map");
    let build = |versions: &str, source: &str| {
        std::fs::write(&script, versions).unwrap();
        let map = format!("-Wl,--version-script={}", script.display());
        compile(dir.path(), "libv8.so", source, &["-Wl,-soname,libv8.so", &map]);
    };
    build(
        "V_1 { global: one; local: *; };\nV_2 { global: two; } V_1;\n",
        "int one(void){return 1;} int two(void){return 2;}",
    );
    let link = format!("-L{}", dir.path().display());
    let top = compile(
        dir.path(),
        "top8.so",
        "int two(void); int t(void){return two();}",
        &[&link, "-lv8", "-Wl,-rpath,$ORIGIN"],
    );
    let Some((ours, _)) = agree(&top, &[]) else {
        return;
    };
    assert!(ours.loads());
    // The same name under an older version only: the file lacks the version.
    build(
        "V_1 { global: one; two; local: *; };\n",
        "int one(void){return 1;} int two(void){return 2;}",
    );
    let (ours, _) = agree(&top, &[]).unwrap();
    assert!(
        matches!(ours.faults.first(), Some(Fault::Version { version, .. }) if version == "V_2"),
        "{ours:?}"
    );
    // The version is there and the symbol is not in it.
    build(
        "V_1 { global: one; two; local: *; };\nV_2 { global: three; } V_1;\n",
        "int one(void){return 1;} int two(void){return 2;} int three(void){return 3;}",
    );
    let (ours, _) = agree(&top, &[]).unwrap();
    assert!(
        matches!(ours.faults.first(), Some(Fault::Undefined { .. })),
        "{ours:?}"
    );
    // None of its own, as with many a library built by hand: the loader takes it with a remark. (One that needs none
    // either, so that its symbols carry no numbers at all, ends the process in an assertion of the loader's.)
    let source = "int puts(const char*); int one(void){return 1;} int two(void){return puts(\"\");}";
    compile(dir.path(), "libv8.so", source, &["-Wl,-soname,libv8.so"]);
    assert!(agree(&top, &[]).unwrap().0.loads());
}

#[test]
fn a_loaded_soname_satisfies_a_need_wherever_it_came_from() {
    let dir = tempfile::tempdir().unwrap();
    for place in ["first", "second"] {
        compile(
            &dir.path().join(place),
            "libs9.so",
            "int s9(void){return 9;}",
            &["-Wl,-soname,libs9.so"],
        );
    }
    let top = compile(
        dir.path(),
        "top9.so",
        "int s9(void); int t(void){return s9();}",
        &[
            &format!("-L{}", dir.path().join("second").display()),
            "-ls9",
            "-Wl,-rpath,$ORIGIN/second",
        ],
    );
    let preload = dir.path().join("first/libs9.so").display().to_string();
    let Some((ours, truth)) = agree(&top, &[("LD_PRELOAD", preload)]) else {
        return;
    };
    assert!(ours.loads() && ours.new.len() == 1, "{ours:?}");
    assert!(!truth.after.iter().any(|p| p.ends_with("second/libs9.so")));
}

#[test]
fn origin_is_the_directory_by_which_a_file_was_found() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("real");
    let linked = dir.path().join("linked");
    std::fs::create_dir_all(linked.join("near")).unwrap();
    compile(
        &linked.join("near"),
        "libo10.so",
        "int o10(void){return 1;}",
        &["-Wl,-soname,libo10.so"],
    );
    let near = format!("-L{}", linked.join("near").display());
    compile(
        &real,
        "top10.so",
        "int o10(void); int t(void){return o10();}",
        &[&near, "-lo10", "-Wl,-rpath,$ORIGIN/near"],
    );
    std::os::unix::fs::symlink(real.join("top10.so"), linked.join("top10.so")).unwrap();
    let Some((ours, _)) = agree(&linked.join("top10.so"), &[]) else {
        return;
    };
    assert!(ours.loads(), "{ours:?}");
    assert!(!agree(&real.join("top10.so"), &[]).unwrap().0.loads());
}

#[test]
fn a_foreign_class_is_passed_over_and_rubbish_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let build = |place: &str| {
        compile(
            &dir.path().join(place),
            "libf11.so",
            "int f11(void){return 1;}",
            &["-Wl,-soname,libf11.so"],
        )
    };
    let (one, _) = (build("one"), build("two"));
    let link = format!("-L{}", dir.path().join("two").display());
    let top = compile(
        dir.path(),
        "top11.so",
        "int f11(void); int t(void){return f11();}",
        &[&link, "-lf11", "-Wl,-rpath,$ORIGIN/one:$ORIGIN/two"],
    );
    let mut bytes = std::fs::read(&one).unwrap();
    bytes[4] = 1;
    std::fs::write(&one, &bytes).unwrap();
    let Some((ours, _)) = agree(&top, &[]) else {
        return;
    };
    assert!(ours.loads(), "{ours:?}");
    std::fs::write(
        &one,
        "not an ELF file, long enough to be read as a header of one, in all its 64 bytes",
    )
    .unwrap();
    let (ours, _) = agree(&top, &[]).unwrap();
    assert!(
        matches!(ours.faults.first(), Some(Fault::Unreadable { .. })),
        "{ours:?}"
    );
}
