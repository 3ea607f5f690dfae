//! Opens logs, and inspects logs without opening them.

use crate::error::OpenError;
use crate::log::Log;
use crate::log::recovery::apply::apply;
use crate::log::recovery::dir_view::DirView;
use crate::log::recovery::input::RecoveryInput;
use crate::log::recovery::inspect;
use crate::log::recovery::recovered::Recovered;
use crate::log::types::{LogOptions, OnDamage, Recovery};

impl Log {
    /// Opens the log in a directory. The directory need not exist: the first append creates it.
    ///
    /// Without a clean stop, segments that reach beyond the recovery point are checked batch by
    /// batch and their indexes are rebuilt; a torn tail is cut and reported.
    /// [`LogOptions::on_damage`] decides about damage.
    ///
    /// # Errors
    /// Files that cannot be read or written, or that belong to another topic id.
    pub fn open(options: LogOptions) -> Result<(Log, Recovery), OpenError> {
        let input = RecoveryInput::of(&options);
        Log::open_by(options, input)
    }

    /// Returns the findings of an open. Changes nothing.
    ///
    /// # Errors
    /// Those of [`Log::open`].
    pub(crate) fn inspect_files(
        options: &LogOptions,
        input: RecoveryInput,
    ) -> Result<Recovered, OpenError> {
        inspect(&DirView::new(&*options.disk, &options.dir), input)
    }

    fn open_by(options: LogOptions, input: RecoveryInput) -> Result<(Log, Recovery), OpenError> {
        let found = Log::inspect_files(&options, input)?;
        Ok(apply(found, options)?)
    }

    /// Checks every batch of a closed log and cuts the log at the first damage, with all records
    /// after it.
    ///
    /// This is what Apache Kafka does when it starts. `dir` must not be open.
    pub fn repair(options: LogOptions) -> Result<Recovery, OpenError> {
        let options = LogOptions { on_damage: OnDamage::Cut, ..options };
        let input = RecoveryInput::of(&options).checking_all();
        let (log, recovery) = Log::open_by(options, input)?;
        log.close()?;
        Ok(recovery)
    }

    /// Opens a log again while this process may still have its files mapped, and checks every
    /// batch. With [`OnDamage::Cut`] it cuts like [`Log::repair`].
    ///
    /// # Errors
    /// Those of [`Log::open`].
    pub(crate) fn reopen(
        options: LogOptions,
        on_damage: OnDamage,
    ) -> Result<(Log, Recovery), OpenError> {
        let options = LogOptions { on_damage, ..options };
        let input = RecoveryInput::of(&options).checking_all();
        let found =
            Log::inspect_files(&options, input)?.cut_by_copy().described_by_recovery_point();
        Ok(apply(found, options)?)
    }
}
