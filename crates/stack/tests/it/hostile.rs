//! Files that lie: no crash, nothing read outside the tree, a clear word about each.

use std::os::unix::fs::{PermissionsExt, symlink};

use shakedown_stack::elf::Image;
use shakedown_stack::fatbin::GpuCode;
use shakedown_stack::{Options, Root};

use super::support::{Env, compile, fatbin, with_fatbin};

#[test]
fn every_truncation_of_an_elf_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = compile(
        dir.path(),
        "x.so",
        &with_fatbin(&fatbin(&[(2, 90), (1, 80)])),
        &[],
    );
    let whole = std::fs::read(&path).unwrap();
    let cut = dir.path().join("cut.so");
    for length in (0..whole.len().min(4096))
        .step_by(13)
        .chain((0..whole.len()).step_by(509))
    {
        std::fs::write(&cut, &whole[..length]).unwrap();
        if let Ok(image) = Image::read(std::fs::File::open(&cut).unwrap()) {
            let _ = (image.undefined(), image.relocated());
        }
        let _ = GpuCode::read(std::fs::File::open(&cut).unwrap());
    }
}

#[test]
fn flipped_bytes_of_an_elf_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = compile(
        dir.path(),
        "x.so",
        "int puts(const char*); int t(void){return puts(\"\");}",
        &[],
    );
    let whole = std::fs::read(&path).unwrap();
    let bad = dir.path().join("bad.so");
    for at in (0..whole.len().min(3000)).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        std::fs::write(&bad, &bytes).unwrap();
        if let Ok(image) = Image::read(std::fs::File::open(&bad).unwrap()) {
            for undefined in image.undefined() {
                let _ = image.defines(&shakedown_stack::elf::Asked::new(&undefined));
            }
        }
    }
}

#[test]
fn a_fatbin_with_lying_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let honest = fatbin(&[(2, 80), (2, 90)]);
    for (at, bytes) in [
        (8, u64::MAX.to_le_bytes()),
        (8, 1_u64.to_le_bytes()),
        (16 + 8, u64::MAX.to_le_bytes()),
        (16 + 4, [0xff; 8]),
    ] {
        let mut lying = honest.clone();
        lying[at..at + 8].copy_from_slice(&bytes);
        let path = compile(dir.path(), "lie.so", &with_fatbin(&lying), &[]);
        let code = GpuCode::read(std::fs::File::open(path).unwrap()).unwrap();
        assert!(code.damaged, "{at}");
    }
    let path = compile(dir.path(), "ok.so", &with_fatbin(&honest), &[]);
    let code = GpuCode::read(std::fs::File::open(path).unwrap()).unwrap();
    assert_eq!((code.cubins.len(), code.damaged), (2, false));
}

#[test]
fn a_record_that_leads_out() {
    let env = Env::new();
    env.pure("good", "1.0", "");
    env.pure("evil", "1.0", "");
    let record = env.site().join("evil-1.0.dist-info/RECORD");
    let mut text = std::fs::read_to_string(&record).unwrap();
    text.push_str("../../../../../../etc/passwd,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,1\n");
    text.push_str("/etc/shadow,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,1\n");
    text.push_str("out/hostname,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,1\n");
    text.push_str("../../../bin/tool,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\nrubbish\n,,\n");
    std::fs::write(&record, text).unwrap();
    std::fs::write(env.prefix().join("bin/tool"), "").unwrap();
    symlink("/etc", env.site().join("out")).unwrap();
    let read = env.read(
        &[],
        Options {
            sm: vec![120],
            ..Options::default()
        },
    );
    let outside: Vec<_> = read
        .reading
        .verification
        .outside
        .iter()
        .map(|(_, p)| p.as_str())
        .collect();
    assert_eq!(outside, ["../../../../../../etc/passwd", "/etc/shadow"]);
    assert_eq!(read.of("stack-record-outside").len(), 2);
    // A directory that is a link out of the environment is not entered: the kernel refuses it.
    assert!(
        read.reading.stack.unread.iter().any(|u| u.what.ends_with("/out")),
        "{:?}",
        read.reading.stack.unread
    );
    assert!(
        !read
            .reading
            .stack
            .changes
            .iter()
            .any(|c| c.path.contains("hostname") || c.path.contains("tool"))
    );
}

#[test]
fn endless_metadata_circles_pipes_and_closed_doors() {
    let env = Env::new();
    env.pure("good", "1.0", "");
    let info = env.site().join("big-1.0.dist-info");
    std::fs::create_dir(&info).unwrap();
    let mut big = b"Name: big\nVersion: 1.0\n".to_vec();
    big.extend(b"Requires-Dist: x\n".repeat(50 << 20 >> 4));
    std::fs::write(info.join("METADATA"), big).unwrap();
    for name in ["loop", "circle"] {
        let info = env.site().join(format!("{name}-1.0.dist-info"));
        std::fs::create_dir(&info).unwrap();
        symlink("METADATA", info.join("METADATA")).unwrap();
    }
    symlink("knot", env.site().join("knot")).unwrap();
    let pipe = env.site().join("pipe-1.0.dist-info");
    std::fs::create_dir(&pipe).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(pipe.join("METADATA"))
            .status()
            .unwrap()
            .success()
    );
    std::fs::set_permissions(
        env.site().join("good/__init__.py"),
        PermissionsExt::from_mode(0o000),
    )
    .unwrap();
    let read = env.read(
        &[],
        Options {
            sm: vec![120],
            ..Options::default()
        },
    );
    let names: Vec<_> = read
        .reading
        .stack
        .packages
        .iter()
        .map(|p| p.name.as_str())
        .collect();
    assert_eq!(names, ["big", "good"]);
    for name in ["loop", "circle", "pipe", "big"] {
        assert!(
            read.reading.stack.unread.iter().any(|u| u.what.contains(name)),
            "{name}: {:?}",
            read.reading.stack.unread
        );
    }
}

#[test]
fn many_files_of_nobody() {
    let env = Env::new();
    env.pure("good", "1.0", "");
    let place = env.site().join("good/data");
    std::fs::create_dir(&place).unwrap();
    for i in 0..3000 {
        std::fs::write(place.join(format!("{i}.txt")), "").unwrap();
    }
    let read = env.read(
        &[],
        Options {
            sm: vec![120],
            ..Options::default()
        },
    );
    assert_eq!(read.reading.stack.changes.len(), 1000);
    assert_eq!(read.reading.verification.more_added, 2000);
}

#[test]
fn no_environment_is_an_error_that_names_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let error =
        shakedown_stack::python::Environment::of_prefix(&Root::new("/"), dir.path(), &Default::default())
            .unwrap_err();
    assert!(error.to_string().contains(&dir.path().display().to_string()));
}
