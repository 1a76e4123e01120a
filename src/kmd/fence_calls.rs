//! Fence calls: the DDIs that make fences known to engines and change their values.

use super::driver::Driver;
use super::{
    CreateNativeFence, CrossAdapterSignals, CurrentValueUpdate, Ddi, DdiError, MapMonitoredFence,
    MonitoredValueUpdate, NativeFenceType, OpenNativeFence, SetCrossDoorbells,
    UpdateCurrentValuesFlags,
};
use crate::abi::HandleAccess;
use crate::gpu::{FencePlaces, Node, NodeError};

/// A driver, asked for its fences.
pub(super) struct FenceCalls<'a>(pub(super) &'a Driver);

impl FenceCalls<'_> {
    pub(super) fn set_cross_doorbells(&self, args: &SetCrossDoorbells<'_>) -> Result<(), DdiError> {
        for node in &self.0.nodes {
            let line = args.lines.get(node.ordinal() as usize);
            let line = line.ok_or(DdiError::InvalidParameter("a node without a line"))?;
            self.0
                .deliver_all(node, node.set_cross_doorbells(args.page, *line)?);
        }
        Ok(())
    }

    pub(super) fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError> {
        let system_process = |node: &Node| -> Option<FencePlaces> {
            let [current, monitored] = args.system_process?;
            Some([current.on(node.ordinal())?, monitored.on(node.ordinal())?])
        };
        let entered = self.0.nodes.iter().try_for_each(|node| {
            let current_value = (args.current_value.region, args.current_value.offset);
            if matches!(args.cross_adapter, CrossAdapterSignals::Interrupts) {
                node.enter_armed_fence(args.global, current_value)?;
            } else {
                node.enter_fence(
                    args.global,
                    current_value,
                    (args.monitored_value.region, args.monitored_value.offset),
                    system_process(node),
                )?;
            }
            if let CrossAdapterSignals::Doorbell(index) = args.cross_adapter {
                node.give_cross_doorbell(args.global, index);
            }
            if args.fence_type == NativeFenceType::INTRA_GPU {
                node.keep_from_cpu(args.global);
            }
            Ok::<_, NodeError>(())
        });
        if entered.is_err() {
            // Of the engines that have it already, which forget it in their own time.
            let _ = self.0.destroy_native_fence(args.global);
        }
        Ok(entered?)
    }

    pub(super) fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        let opened = self.0.nodes.iter().try_for_each(|node| {
            node.open_handle(args.process.0, args.local, args.access, args.global)
        });
        if opened.is_err() {
            // Of the engines that have it already. Nobody was given the handle.
            self.0.close_handle(args.process, args.local);
        }
        Ok(opened?)
    }

    pub(super) fn map_monitored_fence(&self, args: &MapMonitoredFence<'_>) -> Result<(), DdiError> {
        for node in &self.0.nodes {
            let place = (args.current_value.region, args.current_value.offset);
            node.enter_silent_fence(args.global, place)?;
            node.open_handle(
                args.process.0,
                args.local,
                HandleAccess::NO_WAIT,
                args.global,
            )?;
        }
        Ok(())
    }

    pub(super) fn update_monitored_values(&self, updates: &[MonitoredValueUpdate<'_>]) {
        let fences: Vec<_> = updates.iter().map(|u| (u.fence, u.value)).collect();
        for node in &self.0.nodes {
            // Every node's turn stores the words again: the same values, before its own posts.
            node.post_monitored_values(&fences, || {
                for update in updates {
                    update.word.publish(update.value);
                }
            });
        }
    }

    pub(super) fn update_current_values(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateCurrentValuesFlags,
    ) -> Result<(), DdiError> {
        let always_signaled = flags.has(UpdateCurrentValuesFlags::ALWAYS_SIGNALED);
        let notification_only = flags.has(UpdateCurrentValuesFlags::NOTIFICATION_ONLY);
        if flags.unknown() != 0 || always_signaled && notification_only {
            return Err(DdiError::InvalidParameter(
                "AlwaysSignaled and NotificationOnly exclude each other, and other flags are reserved",
            ));
        }
        if always_signaled {
            for node in &self.0.nodes {
                for update in updates {
                    node.always_signal(update.fence);
                }
            }
        } else if !notification_only {
            for update in updates {
                update.word.publish(update.value);
            }
        }
        for node in &self.0.nodes {
            node.signalled(|fence| updates.iter().any(|update| update.fence == fence));
        }
        Ok(())
    }
}
