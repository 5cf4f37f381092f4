//! The control group of a process: its container or service.

/// Shortest container id that is believed.
const ID_MIN: usize = 12;

/// What a process belongs to, by its control group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// Path of the group in the unified hierarchy (or of the first one).
    pub path: String,
    /// Id of the container that it runs in.
    pub container: Option<String>,
    /// The innermost unit of systemd: `vllm.service`.
    pub unit: Option<String>,
}

/// Reads `/proc/PID/cgroup`.
pub fn cgroup(text: &str) -> Option<Group> {
    let paths: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            Some((controllers, path))
        })
        .collect();
    let unified = paths.iter().find(|(controllers, _)| controllers.is_empty());
    let (_, path) = unified.or(paths.first())?;
    let container = paths.iter().find_map(|(_, path)| container_of(path));
    let unit = path
        .split('/')
        .rev()
        .find(|part| part.ends_with(".service"))
        .map(str::to_owned);
    Some(Group {
        path: (*path).to_owned(),
        container,
        unit,
    })
}

/// `docker-ID.scope`, `cri-containerd-ID.scope`, `libpod-ID.scope`, `/docker/ID`, `/kubepods/…/ID`.
fn container_of(path: &str) -> Option<String> {
    path.split('/').rev().find_map(|part| {
        let part = part.strip_suffix(".scope").unwrap_or(part);
        let id = part.rsplit(['-', ':']).next()?;
        let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| id[..ID_MIN].to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn containers_and_units() {
        for path in [
            format!("0::/system.slice/docker-{ID}.scope"),
            format!("12:cpu:/docker/{ID}\n0::/docker/{ID}"),
            format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope"),
            format!("0::/machine.slice/libpod-{ID}.scope/container"),
        ] {
            assert_eq!(
                cgroup(&path).unwrap().container.as_deref(),
                Some("0123456789ab"),
                "{path}"
            );
        }
        let group = cgroup("0::/system.slice/vllm.service\n").unwrap();
        assert_eq!(
            (group.container, group.unit.as_deref()),
            (None, Some("vllm.service"))
        );
        let group = cgroup("0::/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service").unwrap();
        assert_eq!(group.unit.as_deref(), Some("llm.service"));
        assert_eq!(
            cgroup("0::/").unwrap(),
            Group {
                path: "/".to_owned(),
                ..Group::default()
            }
        );
        assert_eq!(cgroup(""), None);
    }
}
