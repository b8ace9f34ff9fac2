// Package kubeletrules is the table of everything that a user can give to a kubelet: the fields of KubeletConfiguration, the flags
// and the feature gates of the supported versions. The CRDs' schemas, the checks before a launch and the tests are made from it.
package kubeletrules
