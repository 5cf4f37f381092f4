//! What the tests build: small shared libraries, wheels as installed, environments.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// Compiles C into a shared library.
pub fn compile(directory: &Path, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    std::fs::create_dir_all(directory).unwrap();
    let out = directory.join(name);
    let input = directory.join(format!("{name}.c"));
    std::fs::write(&input, source).unwrap();
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O0", "-o"])
        .arg(&out)
        .arg(&input)
        .args(arguments)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "cc {name}");
    std::fs::remove_file(input).unwrap();
    out
}

fn base64(bytes: &[u8]) -> String {
    const SET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0_u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..=chunk.len() {
            out.push(char::from(SET[(n >> (18 - 6 * i) & 63) as usize]));
        }
    }
    out
}

/// A Python environment in a directory, with an interpreter that is only a file.
pub struct Env {
    pub dir: tempfile::TempDir,
}

impl Env {
    /// An environment for Python 3.11 under `/opt/env` of a root of its own.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = Self { dir };
        std::fs::create_dir_all(env.site()).unwrap();
        std::fs::create_dir_all(env.prefix().join("bin")).unwrap();
        // The interpreter of these environments is a small executable of its own.
        let source = env.dir.path().join("python.c");
        std::fs::write(
            &source,
            "int PyModule_Create2(void){return 0;} int main(void){return 0;}",
        )
        .unwrap();
        let python = env.prefix().join("bin/python3.11");
        let status = Command::new("cc")
            .arg("-rdynamic")
            .arg("-o")
            .arg(&python)
            .arg(&source)
            .status()
            .unwrap();
        assert!(status.success());
        std::os::unix::fs::symlink("python3.11", env.prefix().join("bin/python3")).unwrap();
        env
    }

    pub fn prefix(&self) -> PathBuf {
        self.dir.path().join("opt/env")
    }

    pub fn site(&self) -> PathBuf {
        self.prefix().join("lib/python3.11/site-packages")
    }

    /// Installs a distribution: its files, and the metadata that an installer writes.
    pub fn install(&self, name: &str, version: &str, headers: &str, tag: &str, files: &[(&str, &[u8])]) {
        let info = format!("{}-{version}.dist-info", name.replace('-', "_"));
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{headers}\n");
        let wheel = format!("Wheel-Version: 1.0\nTag: {tag}\n");
        let mut record = String::new();
        let mut write = |path: &str, bytes: &[u8]| {
            let full = self.site().join(path);
            std::fs::create_dir_all(full.parent().unwrap()).unwrap();
            std::fs::write(full, bytes).unwrap();
            record.push_str(&format!(
                "{path},sha256={},{}\n",
                base64(&Sha256::digest(bytes)),
                bytes.len()
            ));
        };
        for (path, bytes) in files {
            write(path, bytes);
        }
        write(&format!("{info}/METADATA"), metadata.as_bytes());
        write(&format!("{info}/WHEEL"), wheel.as_bytes());
        record.push_str(&format!("{info}/RECORD,,\n"));
        std::fs::write(self.site().join(&info).join("RECORD"), record).unwrap();
        std::fs::write(self.site().join(&info).join("INSTALLER"), "pip\n").unwrap();
    }

    /// Installs a pure package of one module.
    pub fn pure(&self, name: &str, version: &str, headers: &str) {
        let module = format!("{}/__init__.py", name.replace('-', "_"));
        let text = format!("# {name} {version}\n");
        self.install(
            name,
            version,
            headers,
            "py3-none-any",
            &[(&module, text.as_bytes())],
        );
    }

    /// Reads and judges it, on the machine's own file system, so that the C library is the real one.
    pub fn read(&self, variables: &[(&str, &str)], options: shakedown_stack::Options) -> Read {
        let root = shakedown_stack::Root::new("/");
        let variables = variables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let environment = shakedown_stack::python::Environment::of_prefix(&root, &self.prefix(), &variables)
            .expect("an environment");
        let reading = shakedown_stack::read(&root, environment, variables, options);
        let check = reading.check(&root);
        Read { reading, check }
    }
}

pub struct Read {
    pub reading: shakedown_stack::Reading,
    pub check: shakedown_model::StackCheck,
}

impl Read {
    /// The findings of this code.
    pub fn of(&self, code: &str) -> Vec<&shakedown_model::Finding> {
        self.check
            .findings
            .iter()
            .map(|f| &f.finding)
            .filter(|f| f.code == code)
            .collect()
    }

    /// Codes of what fails or warns.
    pub fn codes(&self) -> Vec<&str> {
        self.check
            .findings
            .iter()
            .map(|f| &f.finding)
            .filter(|f| {
                matches!(
                    f.verdict,
                    shakedown_model::Verdict::Fail | shakedown_model::Verdict::Warn
                )
            })
            // What the machine that runs the tests lacks is none of their business.
            .filter(|f| f.code != "stack-toolchain")
            .map(|f| f.code.as_str())
            .collect()
    }

    pub fn primary(&self) -> Option<&shakedown_model::Finding> {
        self.check.findings.iter().find(|f| f.primary).map(|f| &f.finding)
    }
}

/// A fatbin section's bytes for these architectures: kind (1 PTX, 2 cubin) and number.
pub fn fatbin(entries: &[(u16, u32)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, sm) in entries {
        let mut entry = vec![0_u8; 64];
        entry[0..2].copy_from_slice(&kind.to_le_bytes());
        entry[4..8].copy_from_slice(&64_u32.to_le_bytes());
        entry[8..16].copy_from_slice(&8_u64.to_le_bytes());
        entry[28..32].copy_from_slice(&sm.to_le_bytes());
        body.extend(entry);
        body.extend([0xaa; 8]);
    }
    let mut out = 0xba55_ed50_u32.to_le_bytes().to_vec();
    out.extend(1_u16.to_le_bytes());
    out.extend(16_u16.to_le_bytes());
    out.extend((body.len() as u64).to_le_bytes());
    out.extend(body);
    out
}

/// C source of a library whose `.nv_fatbin` section holds these bytes.
pub fn with_fatbin(bytes: &[u8]) -> String {
    let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
    format!(
        "__attribute__((section(\".nv_fatbin\"), aligned(8), used)) const unsigned char code[] = {{{}}};\n",
        list.join(",")
    )
}
