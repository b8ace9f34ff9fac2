package v1alpha1

// FileStage is when a file reaches the machine.
// +kubebuilder:validation:Enum=Boot;Managed
type FileStage string

const (
	// FileStageBoot files are in the user data: cloud-init writes them at the first boot, before
	// anything is downloaded. For what the download itself needs, such as a proxy. They cannot change.
	FileStageBoot FileStage = "Boot"
	// FileStageManaged files are downloaded and followed: changes reach the machine, and a file that
	// leaves the list is deleted from the machine.
	FileStageManaged FileStage = "Managed"
)

// FileEncoding is how content is written down.
// +kubebuilder:validation:Enum=base64;gzip;gzip+base64
type FileEncoding string

const (
	// FileEncodingBase64 content is base64 (RFC 4648, with padding; line breaks are ignored).
	FileEncodingBase64 FileEncoding = "base64"
	// FileEncodingGzip content is compressed by gzip. Only a Secret can hold it: content is text.
	FileEncodingGzip FileEncoding = "gzip"
	// FileEncodingGzipBase64 content is compressed by gzip, and the result is base64.
	FileEncodingGzipBase64 FileEncoding = "gzip+base64"
)

// File is a file on the machine's disk, owned by root.
// +kubebuilder:validation:XValidation:rule="has(self.content) != has(self.contentFrom)",message="exactly one of content and contentFrom must be set"
// +kubebuilder:validation:XValidation:rule="!self.path.startsWith('/etc/systemd/system/cloud-config-downloader.service.d/') || (has(self.stage) && self.stage == 'Boot')",message="a drop-in of the downloader's own unit must have stage Boot"
// +kubebuilder:validation:XValidation:rule="!has(self.encoding) || self.encoding != 'gzip' || !has(self.content)",fieldPath=".encoding",message="gzip is no text: use gzip+base64, or contentFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.units) || size(self.units) == 0 || !has(self.stage) || self.stage == 'Managed'",fieldPath=".units",message="a file of stage Boot never changes: use stage Managed"
type File struct {
	// path is absolute, without "..". It may have spaces between, and every other character but control characters.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(/[^/\x00-\x1f\x7f]+)*/[^/\x00-\x1f\x7f]*[^/\x00-\x20\x7f]$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('/[.][.]?(/|$)')",message="path must not contain . or .. as an element"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/var/lib/cloud-config-downloader/') && !(self in ['/etc/systemd/system/cloud-config-downloader.service', '/etc/systemd/system/kubelet.service', '/var/lib/kubelet/config.yaml', '/var/lib/kubelet/ca.crt', '/var/lib/kubelet/resolv.conf'])",message="the files of the downloader, the kubelet's unit and its configuration belong to the controller"
	Path string `json:"path"`

	// permissions are the octal mode of the file, such as 0644, 644 or 4755. Default 0644.
	// +optional
	// +kubebuilder:default="0644"
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:Pattern=`^(0o?)?[0-7]{3,4}$`
	Permissions string `json:"permissions,omitempty"`

	// encoding of the content, which is decoded before it is sent to the machine; plain text when it is not set.
	// +optional
	Encoding FileEncoding `json:"encoding,omitempty"`

	// content of the file. May be empty.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=262144
	Content *string `json:"content,omitempty"`

	// contentFrom takes the content from elsewhere.
	// +optional
	ContentFrom *FileSource `json:"contentFrom,omitempty"`

	// stage is when the file reaches the machine. Default Managed.
	// +optional
	// +kubebuilder:default=Managed
	Stage FileStage `json:"stage,omitempty"`

	// units read the file, and are restarted or reloaded when it changes or leaves, each once however many of its files change, and
	// before the kubelet. Without units containerd.service is restarted for /etc/containerd/config.toml and files in
	// /etc/containerd/conf.d, and systemd-modules-load.service for files in /etc/modules-load.d.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Units []FileUnit `json:"units,omitempty"`
}

// FileUnitCommand is what is done with a unit when a file that it reads has changed.
// +kubebuilder:validation:Enum=restart;reload
type FileUnitCommand string

const (
	// FileUnitRestart restarts the unit, or starts it.
	FileUnitRestart FileUnitCommand = "restart"
	// FileUnitReload reloads the unit. A unit that cannot reload is restarted.
	FileUnitReload FileUnitCommand = "reload"
)

// FileUnit is a unit that reads a file.
// +kubebuilder:validation:XValidation:rule="self.name != 'cloud-config-downloader.service'",message="the unit of the downloader belongs to the controller"
// +kubebuilder:validation:XValidation:rule="!self.name.contains('@.')",message="a template has nothing to restart: name its instances"
type FileUnit struct {
	// name of the unit with its suffix.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9:_.\\@-]+\.(service|socket|mount|automount|swap|target|path|timer|slice)$`
	Name string `json:"name"`

	// command is restart or reload. Default restart.
	// +optional
	// +kubebuilder:default=restart
	Command FileUnitCommand `json:"command,omitempty"`
}

// FileSourceLabel with the value "true" on a Secret allows that files of CloudConfigs of its namespace take their content from it.
const FileSourceLabel = "bootstrap.millwright.dev/file-source"

// FileSource is where the content of a file is taken from.
type FileSource struct {
	// secret is a key of a Secret in the namespace of the CloudConfig. The Secret must have the label
	// bootstrap.millwright.dev/file-source: "true", by which whoever may write it allows that those who may write
	// CloudConfigs read it. Secrets of Clusters (type cluster.x-k8s.io/secret, or a name like those of kubeconfigs
	// and CAs) and tokens are never read. A change of the Secret reaches the machine when the CloudConfig
	// is next reconciled, at the latest after the manager's sync period.
	// +required
	Secret SecretKeyReference `json:"secret,omitzero"`
}

// SecretKeyReference is a key of a Secret in the same namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}
