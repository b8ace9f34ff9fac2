package drivers

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"sync"
	"testing"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/providers/aws/instance"
)

// certificateSize is the size in bytes of a CA's certificate with an RSA key of 4096 bits. One of kubeadm, with 2048 bits, has 800.
const certificateSize = 1350

// usersAndAuthorities are user data of CloudConfigs that every cloud must accept: up to eight users with keys of each type, and up to
// three authorities, as there are while one is rotated. See kubermatic/machine-controller#1055 and k0smotron#892.
var usersAndAuthorities = sync.OnceValue(func() map[string][]byte {
	all := map[string][]byte{}
	for keyType, key := range keyTypes {
		for _, users := range []int{0, 1, 3, 8} {
			for authorities := 1; authorities <= 3; authorities++ {
				name := fmt.Sprintf("%d users with %s keys and %d authorities", users, keyType, authorities)
				all[name] = userDataOf(users, key, authorities)
			}
		}
	}
	return all
})

// keyTypes return a public key of each type that sshd accepts. Its bytes are random, as little compressible as those of a real key.
var keyTypes = map[string]func() string{
	"ed25519":    func() string { return sshKey("ssh-ed25519", random(32)) },
	"ecdsa-p521": func() string { return sshKey("ecdsa-sha2-nistp521", []byte("nistp521"), random(133)) },
	"rsa-2048":   func() string { return sshKey("ssh-rsa", []byte{1, 0, 1}, random(257)) },
	"rsa-4096":   func() string { return sshKey("ssh-rsa", []byte{1, 0, 1}, random(513)) },
}

func random(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data)
	return data
}

// sshKey encodes a key as in authorized_keys.
func sshKey(keyType string, fields ...[]byte) string {
	var blob []byte
	for _, field := range append([][]byte{[]byte(keyType)}, fields...) {
		blob = append(binary.BigEndian.AppendUint32(blob, uint32(len(field))), field...)
	}
	return keyType + " " + base64.StdEncoding.EncodeToString(blob) + " firstname.lastname@workstation.example.com"
}

func userDataOf(users int, key func() string, authorities int) []byte {
	o := node.UserDataOptions{
		Server: "https://0123456789ABCDEF0123456789ABCDEF.gr7.us-east-1.eks.amazonaws.com", SecretNamespace: "millwright-nodes",
		SecretName: "cloud-config-00112233445566778899", DownloadToken: "abcdef.0123456789abcdef",
	}
	for range authorities {
		o.Authority = append(o.Authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: random(certificateSize)})...)
	}
	for i := range users {
		o.Users = append(o.Users, bootstrapv1.User{
			Name: fmt.Sprintf("operator-%d", i), Groups: []string{"sudo", "docker"}, Sudo: "ALL=(ALL) NOPASSWD:ALL",
			SSHAuthorizedKeys: []string{key()},
		})
	}
	data, err := node.UserData(o)
	if err != nil {
		panic(err)
	}
	return data
}

// Eight users with RSA keys of 4096 bits and three authorities fit where the least is taken, with room for other files.
func TestUserData_MachineController1055_EightUsersFitEC2(t *testing.T) {
	data := userDataOf(8, keyTypes["rsa-4096"], 3)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(data)
	_ = w.Close()
	t.Logf("%d bytes, %d compressed", len(data), packed.Len())
	if limit := instance.Traits().UserDataLimit; packed.Len() > limit-3*1024 {
		t.Errorf("%d bytes compressed; EC2 takes %d", packed.Len(), limit)
	}
}
