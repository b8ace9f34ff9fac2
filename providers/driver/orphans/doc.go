// Package orphans ends what runs in the cloud although no object claims it any more: a user has removed the object by force. Nothing
// is ended that might belong to another owner, be it another management cluster, a copy of this one, or the same one before a backup
// was restored: see driver.Lineage, Record and Decide.
package orphans
