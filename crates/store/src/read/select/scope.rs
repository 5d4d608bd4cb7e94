//! What holds for a selection and all that is read of it.

use crate::base::select_limits::SelectLimits;
use crate::part::page_headers::PageHeaders;
use crate::read::missing::Watch;
use model::TimeRange;
use std::sync::Arc;

/// What holds for a selection.
pub(crate) struct SelectScope {
    /// The time that is selected.
    pub range: TimeRange,
    pub limits: SelectLimits,
    /// What is known of parts already.
    pub page_headers: Arc<PageHeaders>,
    /// What is done about rot.
    pub watch: Watch,
}
