package session

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// OwnAccount asks STS which account the process's own credentials are of. It needs no permission.
func OwnAccount(ctx context.Context, load Load) (string, error) {
	cfg, err := load(ctx, "")
	if err != nil {
		return "", err
	}
	if cfg.Region == "" {
		cfg.Region = homeRegions["aws"]
	}
	out, err := stsClient(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", explain("GetCallerIdentity", err)
	}
	return aws.ToString(out.Account), nil
}
