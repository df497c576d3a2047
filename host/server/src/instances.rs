//! The bound on handlers' instances that are alive at once, in one process.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A place among the instances. It is free again when this is dropped.
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

/// What one store may have of the process's instances: some for itself, and what it gets of those that are for all.
///
/// A batch keeps its instance while it reads, so the batches of a store whose database hangs keep theirs until
/// the deadline. If all were for all, they would take the other stores' with them.
#[derive(Debug, Clone)]
pub(crate) struct Instances {
    own: Arc<Semaphore>,
    own_total: usize,
    common: Arc<Semaphore>,
}

impl Instances {
    /// Shares `total` instances among so many stores: half of them, one for each store at the least, are a
    /// store's own. Only where there are more stores than instances have none an own.
    pub(crate) fn among(stores: usize, total: u32) -> Vec<Self> {
        let total = total as usize;
        let own = match stores {
            0 => 0,
            n => total.div_ceil(2 * n).min(total / n),
        };
        let common = Arc::new(Semaphore::new(total - own * stores));
        (0..stores)
            .map(|_| Self { own: Arc::new(Semaphore::new(own)), own_total: own, common: common.clone() })
            .collect()
    }

    /// How many may be held for as long as their holder likes: half of the store's own, so that the rest go round.
    pub(crate) fn to_keep(&self) -> usize {
        self.own_total / 2
    }

    /// A place, if one of the store's own is free.
    pub(crate) fn try_slot(&self) -> Option<Slot> {
        let permit = self.own.clone().try_acquire_owned().ok()?;
        Some(Slot { _permit: Some(permit) })
    }

    /// Waits for a place.
    pub(crate) async fn slot(&self) -> Slot {
        // Own ones first: what is for all is left to those who need it. The semaphores are never closed.
        let permit = tokio::select! {
            biased;
            own = self.own.clone().acquire_owned() => own,
            common = self.common.clone().acquire_owned() => common,
        };
        Slot { _permit: permit.ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(instances: &Instances) -> (usize, usize) {
        (instances.own.available_permits(), instances.common.available_permits())
    }

    #[test]
    fn half_is_for_all_and_every_store_has_one_while_there_are_enough() {
        let shares = |stores, total| Instances::among(stores, total).iter().map(free).collect::<Vec<_>>();
        assert_eq!(shares(1, 64), [(32, 32)]);
        assert_eq!(shares(2, 64), [(16, 32); 2]);
        assert_eq!(shares(3, 64), [(11, 31); 3]);
        assert_eq!(shares(2, 2), [(1, 0); 2]);
        assert_eq!(shares(2, 3), [(1, 1); 2]);
        assert_eq!(shares(3, 2), [(0, 2); 3]);
        assert_eq!(shares(1, 1), [(1, 0)]);
    }

    #[tokio::test]
    async fn a_store_that_has_taken_all_it_can_leaves_the_other_its_own() {
        let shares = Instances::among(2, 4);
        let taken = [shares[0].slot().await, shares[0].slot().await, shares[0].slot().await];
        assert_eq!((free(&shares[0]), free(&shares[1])), ((0, 0), (1, 0)));
        let own = shares[1].slot().await;
        drop(taken);
        assert_eq!(free(&shares[1]), (0, 2));
        drop(own);
        assert_eq!(free(&shares[1]), (1, 2));
    }
}
