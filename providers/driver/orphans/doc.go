// Package orphans ends what runs in the cloud although no object claims it any more: a user has removed the object by force. Nothing
// is ended that another management cluster may own, or that was perhaps launched after the backup that was restored: see driver.Lineage,
// Record and Decide.
package orphans
