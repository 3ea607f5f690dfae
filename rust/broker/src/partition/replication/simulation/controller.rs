//! The active controller's decisions about one partition, in order; its own log is never lost.

use pykafka_record::LeaderEpoch;

use super::Wrong;
use crate::partition::replication::isr::BrokerState;
use crate::partition::replication::{Assignment, EligibleBrokers};

/// A broker, as the controller knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registration {
    pub(super) id: i32,
    pub(super) broker_epoch: i64,
    pub(super) is_fenced: bool,
    /// Number of the image that contains it.
    pub(super) image: usize,
    /// The newest attempt of its requests.
    pub(super) attempt: u64,
}

/// The contents of an image: the partition, and the brokers that may join its ISR.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) assignment: Assignment,
    pub(super) eligible: EligibleBrokers,
}

/// A change of the ISR that a leader requests.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) leader: BrokerState,
    /// Number of the attempt; a repeated request uses another connection.
    pub(super) attempt: u64,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) partition_epoch: i32,
    pub(super) isr: Vec<BrokerState>,
}

/// A response to a [`Wish`], as far as brokers distinguish responses.
#[derive(Debug, Clone)]
pub(super) enum Verdict {
    Committed {
        isr: Vec<i32>,
        partition_epoch: i32,
    },
    /// The committed state stays.
    Refused,
    /// The image will contain the current state.
    Outdated,
    /// The broker is not registered with this epoch; it must retry.
    NotNow,
}

/// The active controller, reduced to one partition.
#[derive(Debug)]
pub(super) struct Controller {
    pub(super) registrations: Vec<Registration>,
    /// In order; the last one is the newest.
    pub(super) images: Vec<Image>,
    pub(super) partition: Assignment,
    wrong: Option<Wrong>,
}

impl Controller {
    pub(super) fn new(replicas: &[i32], wrong: Option<Wrong>) -> Controller {
        let registration = |id: &i32| Registration {
            id: *id,
            broker_epoch: i64::from(*id),
            is_fenced: false,
            image: 0,
            attempt: 0,
        };
        let mut controller = Controller {
            registrations: replicas.iter().map(registration).collect(),
            images: Vec::new(),
            partition: Assignment {
                leader: replicas[0],
                leader_epoch: LeaderEpoch::ZERO,
                partition_epoch: 0,
                replicas: replicas.to_vec(),
                isr: replicas.to_vec(),
                elr: Vec::new(),
                lost: Vec::new(),
            },
            wrong,
        };
        controller.publish();
        controller
    }

    pub(super) fn registration(&self, id: i32) -> Registration {
        *self.registrations.iter().find(|known| known.id == id).expect("a broker")
    }

    /// Registers a restarted broker as fenced. Returns its new epoch, unless its previous run is
    /// not fenced yet.
    pub(super) fn register(&mut self, id: i32) -> Option<i64> {
        let leads_on = self.wrong == Some(Wrong::RestartLeadsInOldEpoch);
        let broker_epoch = 100 + self.images.len() as i64;
        let image = self.images.len();
        let known = self.known(id);
        if !known.is_fenced && !leads_on {
            return None;
        }
        *known = Registration { broker_epoch, image, attempt: 0, ..*known };
        self.publish();
        Some(broker_epoch)
    }

    /// Fences a broker whose session ends: it leads nothing, and stays in the ISR only as the last
    /// member.
    pub(super) fn fence(&mut self, id: i32) {
        if self.registration(id).is_fenced {
            return;
        }
        self.known(id).is_fenced = true;
        let mut isr = self.partition.isr.clone();
        if isr.len() > 1 {
            isr.retain(|member| *member != id);
        }
        self.decide(isr, self.partition.leader == id);
    }

    pub(super) fn unfence(&mut self, id: i32) {
        if self.registration(id).is_fenced {
            self.known(id).is_fenced = false;
            self.decide(self.partition.isr.clone(), self.partition.leader == -1);
        }
    }

    /// Elects another member of the ISR.
    pub(super) fn elect(&mut self, id: i32) {
        let is_live = !self.registration(id).is_fenced;
        if is_live && self.partition.isr.contains(&id) && self.partition.leader != id {
            self.partition.leader = id;
            self.partition.leader_epoch = next(self.partition.leader_epoch);
            self.partition.partition_epoch += 1;
            self.publish();
        }
    }

    /// Decides a leader's request (contract/replication.md#29–#32).
    pub(super) fn judge(&mut self, wish: &Wish) -> Verdict {
        let now = &self.partition;
        let takes_stale = self.wrong == Some(Wrong::AcceptStaleBrokerEpoch);
        let is_live = |member: &BrokerState| {
            let known = self.registration(member.broker_id);
            !known.is_fenced && (takes_stale || known.broker_epoch == member.broker_epoch)
        };
        if self.registration(wish.leader.broker_id).broker_epoch != wish.leader.broker_epoch {
            return Verdict::NotNow;
        }
        let asked_by = self.registration(wish.leader.broker_id);
        if wish.attempt < asked_by.attempt && self.wrong != Some(Wrong::AnswerWhoGaveUp) {
            return Verdict::NotNow;
        }
        let is_newest = now.leader == wish.leader.broker_id
            && now.leader_epoch == wish.leader_epoch
            && now.partition_epoch == wish.partition_epoch;
        if !is_newest {
            return Verdict::Outdated;
        }
        let are_live = wish.isr.iter().all(is_live);
        self.known(wish.leader.broker_id).attempt = wish.attempt;
        if !are_live {
            return Verdict::Refused;
        }
        self.partition.isr = wish.isr.iter().map(|member| member.broker_id).collect();
        self.partition.partition_epoch += 1;
        self.publish();
        let Assignment { isr, partition_epoch, .. } = self.partition.clone();
        Verdict::Committed { isr, partition_epoch }
    }

    fn known(&mut self, id: i32) -> &mut Registration {
        self.registrations.iter_mut().find(|known| known.id == id).expect("a broker")
    }

    /// Commits an ISR, and elects a leader if another one is needed.
    fn decide(&mut self, isr: Vec<i32>, elects: bool) {
        let mut leader = self.partition.leader;
        if elects {
            let anybody = self.wrong == Some(Wrong::ElectOutsideOfIsr);
            let may_lead =
                |id: &&i32| (anybody || isr.contains(*id)) && !self.registration(**id).is_fenced;
            leader = self.partition.replicas.iter().find(may_lead).copied().unwrap_or(-1);
        }
        if isr != self.partition.isr || leader != self.partition.leader {
            self.partition.partition_epoch += 1;
        }
        if leader != self.partition.leader {
            self.partition.leader_epoch = next(self.partition.leader_epoch);
        }
        // A leader from outside the ISR is the only in-sync replica.
        self.partition.isr = if leader == -1 || isr.contains(&leader) { isr } else { vec![leader] };
        self.partition.leader = leader;
        self.publish();
    }

    fn publish(&mut self) {
        let live = self.registrations.iter().filter(|known| !known.is_fenced);
        let eligible = live.map(|known| (known.id, known.broker_epoch)).collect();
        self.images.push(Image { assignment: self.partition.clone(), eligible });
    }
}

fn next(epoch: LeaderEpoch) -> LeaderEpoch {
    LeaderEpoch::new(epoch.get() + 1)
}
