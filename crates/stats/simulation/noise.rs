//! Random draws.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A seeded source of draws.
pub(crate) struct Draws(ChaCha8Rng);

impl Draws {
    /// The same draws for the same seed and place.
    pub(crate) fn new(seed: u64, place: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(place);
        Self(rng)
    }

    /// Uniform on (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.0.random::<u64>() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }

    /// Fair coin.
    pub(crate) fn coin(&mut self) -> bool {
        self.0.random::<u64>() >> 63 == 1
    }

    /// Standard normal (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Student t with 4 degrees of freedom, scaled to standard deviation 1 (its own is √2).
    fn heavy(&mut self) -> f64 {
        // χ² with 4 degrees is −2 ln of a product of two uniforms.
        let chi = -2.0 * (self.uniform() * self.uniform()).ln();
        self.normal() / (chi / 4.0).sqrt() / std::f64::consts::SQRT_2
    }
}

/// A stationary AR(1) process with innovations of Student t with 4 degrees.
pub(crate) struct Process {
    rho: f64,
    sd: f64,
    state: f64,
}

impl Process {
    /// A process in its stationary state.
    pub(crate) fn new(draws: &mut Draws, rho: f64, sd: f64) -> Self {
        let mut process = Self {
            rho,
            sd,
            state: draws.heavy(),
        };
        if rho != 0.0 {
            for _ in 0..20 {
                process.next(draws);
            }
        }
        process
    }

    /// The next value, of standard deviation `sd`.
    pub(crate) fn next(&mut self, draws: &mut Draws) -> f64 {
        self.state = self.rho * self.state + (1.0 - self.rho * self.rho).sqrt() * draws.heavy();
        self.sd * self.state
    }
}
