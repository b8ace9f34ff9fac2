// Package admission serves the webhooks of the core kinds: it applies defaults, validates, and converts between the
// API versions v1beta1 and v1beta2. Which defaults it applies and what it refuses is decided by the packages defaults and validate; the
// conversion is Cluster API's own. See README.md.
package admission
