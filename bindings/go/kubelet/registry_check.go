package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/kubelet/internal/registry"
)

// RegistryCheck asks an image's registry itself, past every mirror, whether the credentials of a pod
// open what was just pulled with them. The runtime does not say who checked them: a mirror may ask for
// none, and gives the image to whoever pulls. The zero value asks after each pull.
type RegistryCheck struct {
	// For one pull; 0: 5 seconds. The pod waits.
	Timeout time.Duration
	// Registries, as host or host:port, that are asked without TLS. Those of the loopback are anyway.
	PlainHTTP []string
	// Whether another host than the registry may have served a pull of this string; nil: always.
	MayBeMirrored func(image string) bool
}

// ManagerOption is one of NewImagePullManager's.
type ManagerOption func(*ImagePullManager) error

// AskRegistries lets the manager ask. It needs CheckPull in the kubelet's pullImage, as cmd/build puts
// it there; without, nobody is asked.
func AskRegistries(check RegistryCheck) ManagerOption {
	return func(m *ImagePullManager) error {
		m.check = &check
		m.ask = (&registry.Client{Timeout: check.Timeout, PlainHTTP: check.PlainHTTP}).Ask
		return nil
	}
}

// RegistryCheckOfEnvironment is how a kubelet that cmd/build makes is told to ask: by WAYBILL_REGISTRY_CHECK=on.
func RegistryCheckOfEnvironment() ManagerOption {
	return func(m *ImagePullManager) error {
		switch value := os.Getenv(checkVariable); value {
		case "", "off":
			return nil
		case "on":
			return AskRegistries(RegistryCheck{})(m)
		default:
			return fmt.Errorf("%s is %q; it may be on or off", checkVariable, value)
		}
	}
}

const checkVariable = "WAYBILL_REGISTRY_CHECK"

// checked is what is known of a pull beside its credentials.
type checked struct {
	manager  *ImagePullManager
	imageRef string
	answer   registry.Answer
}

type checkedKey struct{}

func (m *ImagePullManager) checkOf(ctx context.Context) (checked, bool) {
	of, ok := ctx.Value(checkedKey{}).(checked)
	return of, ok && of.manager == m
}

var errRefused = errors.New("the registry does not give this image to the pod's credentials: a mirror did, which does not ask for them")

// CheckPull stands behind a pull, and before its end is recorded with the returned context. Of the
// credentials that the pod has it returns those that the registry takes: where a mirror asks for none, the
// pull shows the first. If the registry takes none, the pull counts as failed, and what it brought as
// pulled with credentials that nobody knows. If it is not reached, the pull counts as the mirror's.
// A pull that failed stays as it is, and so does one of a manager that was not told to ask.
func CheckPull(ctx context.Context, manager pullmanager.ImagePullManager, image, imageRef string, all []credentialprovider.TrackedAuthConfig,
	used *credentialprovider.TrackedAuthConfig, pullErr error) (context.Context, *credentialprovider.TrackedAuthConfig, error) {
	m, ours := manager.(*ImagePullManager)
	if !ours || m.check == nil || pullErr != nil || imageRef == "" || m.check.MayBeMirrored != nil && !m.check.MayBeMirrored(image) {
		return ctx, used, pullErr
	}
	answer, taken, err := m.askFor(ctx, image, imageRef, all, used)
	ctx = context.WithValue(ctx, checkedKey{}, checked{m, imageRef, answer})
	switch answer {
	case registry.Yes:
		return ctx, taken, nil
	case registry.No:
		return ctx, used, errRefused
	default:
		klog.FromContext(ctx).Error(err, "The registry did not say whether it gives the image to the pod's credentials; a mirror may have given it to anybody", "image", image)
		return ctx, used, nil
	}
}

// askFor asks for each credential, first for the one that was used.
func (m *ImagePullManager) askFor(ctx context.Context, image, imageRef string, all []credentialprovider.TrackedAuthConfig,
	used *credentialprovider.TrackedAuthConfig) (registry.Answer, *credentialprovider.TrackedAuthConfig, error) {
	tried := []*credentialprovider.TrackedAuthConfig{used}
	for i := range all {
		if used == nil || all[i] != *used {
			tried = append(tried, &all[i])
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(m.check.Timeout, registry.DefaultTimeout))
	defer cancel()
	digest := m.digestOf(ctx, image, imageRef)
	var unknown error
	for _, credential := range tried {
		var shown registry.Credential
		if credential != nil {
			shown = registry.Credential{Username: credential.Username, Password: credential.Password,
				IdentityToken: credential.IdentityToken, RegistryToken: credential.RegistryToken}
		}
		switch answer, err := m.ask(ctx, image, digest, shown); answer {
		case registry.Yes:
			return registry.Yes, credential, nil
		case registry.Unknown:
			unknown = errors.Join(unknown, err)
		}
	}
	if unknown != nil {
		return registry.Unknown, nil, unknown
	}
	return registry.No, nil, nil
}

// digestOf returns the digest by which the registry knows what was pulled, if the runtime says one that is
// the only one: a mirror may have another image under the tag. Empty: what the string names.
func (m *ImagePullManager) digestOf(ctx context.Context, image, imageRef string) string {
	parts, ok := waybill.ParseImage(image)
	if !ok || parts.Digest != "" {
		return ""
	}
	images, err := m.imageService.ListImages(ctx)
	if err != nil {
		return ""
	}
	var digests []string
	for _, listed := range images {
		if listed.ID != imageRef {
			continue
		}
		for _, digest := range listed.RepoDigests {
			if repository, digest, ok := strings.Cut(digest, "@"); ok && sameRepository(repository, image) && !slices.Contains(digests, digest) {
				digests = append(digests, digest)
			}
		}
	}
	if len(digests) != 1 {
		return ""
	}
	return digests[0]
}

func sameRepository(a, b string) bool {
	first, err := reference.ParseNormalizedNamed(a)
	if err != nil {
		return false
	}
	second, err := reference.ParseNormalizedNamed(b)
	return err == nil && first.Name() == second.Name()
}
