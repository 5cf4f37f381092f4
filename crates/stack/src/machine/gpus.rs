//! GPUs from the text that `nvidia-smi` prints; the caller runs it, on this machine or another.

use shakedown_model::StackGpu;

/// The arguments whose output [`parse_smi`] reads.
pub const SMI_QUERY: [&str; 2] = [
    "--query-gpu=index,name,compute_cap,memory.total,pci.bus_id,pcie.link.gen.current,pcie.link.width.current",
    "--format=csv,noheader,nounits",
];

/// Reads the CSV of [`SMI_QUERY`]; lines of another form are left out.
pub fn parse_smi(text: &str) -> Vec<StackGpu> {
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let [index, name, capability, memory, pci, generation, width] = fields.as_slice() else {
                return None;
            };
            Some(StackGpu {
                index: index.parse().ok()?,
                name: (*name).to_owned(),
                sm: crate::check::parse_sm(capability),
                memory_mib: memory.parse().ok(),
                pci: (!pci.is_empty()).then(|| (*pci).to_owned()),
                pcie_gen: generation.parse().ok(),
                pcie_width: width.parse().ok(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv() {
        let text = "0, NVIDIA RTX PRO 6000 Blackwell, 12.0, 97887, 00000000:01:00.0, 5, 16\n\
            1, NVIDIA H200, 9.0, 143771, 00000000:02:00.0, [N/A], [N/A]\nFailed to initialize NVML\n";
        let gpus = parse_smi(text);
        assert_eq!(gpus.len(), 2);
        assert_eq!(
            (gpus[0].sm, gpus[0].memory_mib, gpus[0].pcie_width),
            (Some(120), Some(97887), Some(16))
        );
        assert_eq!((gpus[1].sm, gpus[1].pcie_gen), (Some(90), None));
    }
}
