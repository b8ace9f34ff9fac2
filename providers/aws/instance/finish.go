package instance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

var _ driver.Finisher[*infrav1.AWSMachine] = (*Driver)(nil)

// networkInterface is what Finish has to know of a network interface: RunInstances does not take the check of sources and destinations,
// which each has for itself.
type networkInterface struct {
	slot
	id      string
	checked bool
}

// slot is the place of a network interface on the instance.
type slot struct{ card, device int32 }

// settings lists the network interfaces of an instance that have IP addresses, and whether EC2 checks their sources and destinations, as
// "card/device:id:checked" in the order of their slots.
func settings(i types.Instance) string {
	var list []string
	for _, nic := range i.NetworkInterfaces {
		if nic.Attachment == nil || nic.SourceDestCheck == nil || aws.ToString(nic.InterfaceType) == string(infrav1.InterfaceTypeEFAOnly) {
			continue
		}
		list = append(list, fmt.Sprintf("%d/%d:%s:%t", aws.ToInt32(nic.Attachment.NetworkCardIndex), aws.ToInt32(nic.Attachment.DeviceIndex),
			aws.ToString(nic.NetworkInterfaceId), *nic.SourceDestCheck))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// parseSettings is the inverse of settings.
func parseSettings(text string) []networkInterface {
	var list []networkInterface
	for _, field := range strings.Fields(text) {
		var nic networkInterface
		var rest string
		if n, _ := fmt.Sscanf(field, "%d/%d:%s", &nic.card, &nic.device, &rest); n != 3 {
			continue
		}
		id, checked, _ := strings.Cut(rest, ":")
		nic.id, nic.checked = id, checked == strconv.FormatBool(true)
		list = append(list, nic)
	}
	return list
}

// unlike returns the network interfaces of the launch whose check is not as the spec wants it. Those that others have attached, such as the
// VPC CNI for the addresses of pods, are theirs.
func unlike(spec *infrav1.AWSMachineSpec, text string) []networkInterface {
	if spec.SourceDestCheck == nil {
		return nil
	}
	own := []slot{{0, 0}}
	for i, device := range deviceIndices(spec.ExtraInterfaces) {
		own = append(own, slot{aws.ToInt32(spec.ExtraInterfaces[i].NetworkCardIndex), device})
	}
	return slices.DeleteFunc(parseSettings(text), func(nic networkInterface) bool {
		return nic.checked == *spec.SourceDestCheck || !slices.Contains(own, nic.slot)
	})
}

// Unfinished names the network interfaces whose check of sources and destinations is not as the spec wants it.
func (d *Driver) Unfinished(m *infrav1.AWSMachine, i driver.Instance) string {
	var ids []string
	for _, nic := range unlike(&m.Spec, i.Settings) {
		ids = append(ids, nic.id)
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("sourceDestCheck is not %t on %s", *m.Spec.SourceDestCheck, strings.Join(ids, ", "))
}

// Finish switches the check on these network interfaces. EC2 takes one for each call, and any number of times.
func (d *Driver) Finish(ctx context.Context, m *infrav1.AWSMachine, i driver.Instance) error {
	r, err := d.in(ctx, d.Scope(m))
	if err != nil {
		return err
	}
	for _, nic := range unlike(&m.Spec, i.Settings) {
		_, err := r.api.ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{
			NetworkInterfaceId: aws.String(nic.id), SourceDestCheck: &types.AttributeBooleanValue{Value: m.Spec.SourceDestCheck},
		}, once)
		if code, message := codeOf(err); code == codeNoInterface { // Soon after the launch it is not known everywhere.
			return driver.NewRefusedError("ModifyNetworkInterfaceAttribute", code, plain(err, message))
		}
		if err != nil {
			return classify("ModifyNetworkInterfaceAttribute", err)
		}
	}
	return nil
}

// codeNoInterface means that EC2 does not know a network interface.
const codeNoInterface = "InvalidNetworkInterfaceID.NotFound"
