package kubelet

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
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
// none, and gives the image to whoever pulls. The zero value is ready.
type RegistryCheck struct {
	// For one pull; 0: 5 seconds. The pod waits.
	Timeout time.Duration
	// Registries, as host or host:port, that are asked without TLS. Those of the loopback are anyway.
	PlainHTTP []string
}

// ManagerOption is one of NewImagePullManager's.
type ManagerOption func(*ImagePullManager) error

// CheckersOf says who checks the credentials of a pull: the registry, or by the configuration of the runtime
// (by the name that it says: containerd, cri-o) another host. It is read anew for each pull. What
// waybill.PullSourcesOf can't see, this can't. Without this option nobody is said to have checked.
func CheckersOf(runtimeName string) ManagerOption {
	return checkersOf(waybill.RuntimeAnswers{Version: runtimeName})
}

func checkersOf(runtime waybill.RuntimeAnswers) ManagerOption {
	return func(m *ImagePullManager) error {
		m.checker = func(image, runtimeHandler string) waybill.ProofChecker {
			pulls, err := waybill.ReadRuntimePulls(runtime)
			if err != nil {
				return waybill.CheckerUnknown
			}
			sources, err := waybill.PullSourcesOf(pulls, image, runtimeHandler)
			if err != nil {
				return waybill.CheckerUnknown
			}
			return sources.Checker
		}
		return nil
	}
}

// AskRegistries lets the manager ask where CheckersOf does not say that the registry checked. It needs CheckPull in the kubelet's pullImage, as cmd/build puts
// it there; without, nobody is asked.
func AskRegistries(check RegistryCheck) ManagerOption {
	return func(m *ImagePullManager) error {
		m.timeout = cmp.Or(check.Timeout, registry.DefaultTimeout)
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

// pulledProof is what is known of what a pull proved, beside its credentials.
type pulledProof struct {
	manager  *ImagePullManager
	imageRef string
	terms    waybill.ProofTerms
	refused  bool // by the registry
}

type pulledProofKey struct{}

func (m *ImagePullManager) pulledProofOf(ctx context.Context) pulledProof {
	if of, ok := ctx.Value(pulledProofKey{}).(pulledProof); ok && of.manager == m {
		return of
	}
	return pulledProof{}
}

var errRefused = errors.New("the registry does not give this image to the pod's credentials: a mirror did, which does not ask for them")

// CheckPull stands behind a pull, and before its end is recorded with the returned context: that says who
// checked the credentials (CheckersOf), and until when they are good by their own word. If the manager was
// told to ask (AskRegistries) and another host may have served the pull, the registry is asked. Of the credentials
// that the pod has, CheckPull returns those that the registry takes: where a mirror asks for none, the pull shows the
// first. If the registry takes none, the pull counts as failed, and what it brought as pulled with
// credentials that nobody knows. A pull that failed stays as it is.
func CheckPull(ctx context.Context, manager pullmanager.ImagePullManager, image, runtimeHandler, imageRef string, all []credentialprovider.TrackedAuthConfig,
	used *credentialprovider.TrackedAuthConfig, pullErr error) (context.Context, *credentialprovider.TrackedAuthConfig, error) {
	m, ours := manager.(*ImagePullManager)
	if !ours || pullErr != nil || imageRef == "" {
		return ctx, used, pullErr
	}
	is := pulledProof{manager: m, imageRef: imageRef}
	if m.checker != nil {
		is.terms.Checker = m.checker(image, runtimeHandler)
	}
	if m.ask != nil && is.terms.Checker != waybill.CheckerRegistry {
		switch answer, taken, err := m.askFor(ctx, image, imageRef, all, used); answer {
		case registry.Yes:
			is.terms.Checker, used = waybill.CheckerRegistry, taken
		case registry.No:
			is.refused = true
			return context.WithValue(ctx, pulledProofKey{}, is), used, errRefused
		default:
			klog.FromContext(ctx).Error(err, "The registry did not say whether it gives the image to the pod's credentials; a mirror may have given it to anybody", "image", image)
		}
	}
	is.terms.GoodUntil = goodUntil(used)
	return context.WithValue(ctx, pulledProofKey{}, is), used, nil
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
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
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

// goodUntil returns the time at which a credential ends, if it says so itself: a JSON Web Token, as a credential
// provider with the cache type Token passes it on. The claims are those of the pod's own credential, and
// an end can only close, so the signature does not matter. The zero value: unknown.
func goodUntil(credential *credentialprovider.TrackedAuthConfig) time.Time {
	var until time.Time
	if credential == nil {
		return until
	}
	for _, token := range []string{credential.Password, credential.RegistryToken, credential.IdentityToken} {
		if end := expiryOf(token); !end.IsZero() && (until.IsZero() || end.Before(until)) {
			until = end
		}
	}
	return until
}

func expiryOf(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > 64<<10 {
		return time.Time{}
	}
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return time.Time{}
	}
	var kind struct {
		Algorithm string `json:"alg"`
	}
	if json.Unmarshal(header, &kind) != nil || kind.Algorithm == "" {
		return time.Time{}
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var end struct {
		Expiry *float64 `json:"exp"`
	}
	if json.Unmarshal(claims, &end) != nil || end.Expiry == nil || *end.Expiry > 253402300799 { // of year 9999
		return time.Time{}
	}
	// The store takes times after 1970; what ended before has ended.
	return time.Unix(int64(max(*end.Expiry, 1)), 0)
}
