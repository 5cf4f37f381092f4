//! The catalogue's files, compiled in.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each file.
        pub(super) const FILES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../../catalog/failures/", $name, ".toml")))),*
        ];
    };
}

files!(
    "stages",
    "process",
    "memory",
    "network",
    "readiness",
    "benign",
    "libraries",
    "driver",
    "arch",
    "versions",
    "jit",
    "distributed",
    "watchdog",
    "model",
    "files",
    "config",
    "speculative",
    "in_force",
    "client",
    "general"
);
