package kubelet

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
)

// VerificationPolicy returns the policy of the kubelet's configuration: the fields
// imagePullCredentialsVerificationPolicy and preloadedImagesVerificationAllowlist. As in the kubelet,
// the allowlist counts only with NeverVerifyAllowlistedImages, and opens every image that it names.
func VerificationPolicy(policy kubeletconfig.ImagePullCredentialsVerificationPolicy, allowlist []string) (*waybill.VerificationPolicy, error) {
	mode, err := waybill.ParseVerificationMode(string(policy))
	if err != nil {
		return nil, fmt.Errorf("unknown image pull credential verification policy: %v", policy)
	}
	if mode != waybill.NeverVerifyAllowlistedImages {
		allowlist = nil
	}
	return waybill.NewVerificationPolicy(mode, allowlist, waybill.AllowlistAnyImage)
}

// ImagesOnNode converts the runtime's list of images. The result is never nil: nil would mean that the
// images are unknown, an empty list means that there are none.
func ImagesOnNode(images []kubecontainer.Image) []waybill.ImageOnNode {
	converted := make([]waybill.ImageOnNode, 0, len(images))
	for _, image := range images {
		converted = append(converted, waybill.ImageOnNode{
			ID:             image.ID,
			RepoTags:       image.RepoTags,
			RepoDigests:    image.RepoDigests,
			RuntimeHandler: image.Spec.RuntimeHandler,
			Pinned:         image.Pinned,
		})
	}
	return converted
}

// sizesOf says how large the images are, for a trace. The kubelet has it in the same list.
func sizesOf(images []kubecontainer.Image) []uint64 {
	sizes := make([]uint64, 0, len(images))
	for _, image := range images {
		sizes = append(sizes, uint64(max(image.Size, 0)))
	}
	return sizes
}

// RuntimeHandlers converts the handlers of the runtime's status (kubecontainer.RuntimeStatus.Handlers).
// The nameless handler is the default.
func RuntimeHandlers(handlers []kubecontainer.RuntimeHandler) []waybill.RuntimeHandler {
	converted := make([]waybill.RuntimeHandler, 0, len(handlers))
	for _, handler := range handlers {
		converted = append(converted, waybill.RuntimeHandler{
			Name:           handler.Name,
			IsDefault:      handler.Name == "",
			UserNamespaces: handler.SupportsUserNamespaces,
		})
	}
	return converted
}

func secretsToStore(secrets []kubeletconfig.ImagePullSecret) []waybill.ImagePullSecret {
	if len(secrets) == 0 {
		return nil
	}
	converted := make([]waybill.ImagePullSecret, len(secrets))
	for i, secret := range secrets {
		converted[i] = waybill.ImagePullSecret(secret)
	}
	return converted
}

func credentialsToStore(credentials *kubeletconfig.ImagePullCredentials) *waybill.ImagePullCredentials {
	if credentials == nil {
		return nil
	}
	converted := &waybill.ImagePullCredentials{
		NodePodsAccessible: credentials.NodePodsAccessible,
		KubernetesSecrets:  secretsToStore(credentials.KubernetesSecrets),
	}
	for _, account := range credentials.KubernetesServiceAccounts {
		converted.KubernetesServiceAccounts = append(converted.KubernetesServiceAccounts, waybill.ImagePullServiceAccount(account))
	}
	return converted
}

func credentialsToKubelet(credentials waybill.ImagePullCredentials) kubeletconfig.ImagePullCredentials {
	converted := kubeletconfig.ImagePullCredentials{NodePodsAccessible: credentials.NodePodsAccessible}
	for _, secret := range credentials.KubernetesSecrets {
		converted.KubernetesSecrets = append(converted.KubernetesSecrets, kubeletconfig.ImagePullSecret(secret))
	}
	for _, account := range credentials.KubernetesServiceAccounts {
		converted.KubernetesServiceAccounts = append(converted.KubernetesServiceAccounts, kubeletconfig.ImagePullServiceAccount(account))
	}
	return converted
}

// recordToStore cuts the time to the second, as the kubelet's files do.
func recordToStore(record *kubeletconfig.ImagePulledRecord) waybill.ImagePulledRecord {
	converted := waybill.ImagePulledRecord{ImageRef: record.ImageRef}
	if !record.LastUpdatedTime.IsZero() {
		converted.LastUpdatedTime = cutToSecond(record.LastUpdatedTime.Time)
	}
	if len(record.CredentialMapping) > 0 {
		converted.CredentialMapping = make(map[string]waybill.ImagePullCredentials, len(record.CredentialMapping))
		for name, credentials := range record.CredentialMapping {
			converted.CredentialMapping[name] = *credentialsToStore(&credentials)
		}
	}
	return converted
}

// recordToKubelet returns what reading the kubelet's own file would: times in whole seconds and in
// local time, and nil for empty fields.
func recordToKubelet(record waybill.ImagePulledRecord) *kubeletconfig.ImagePulledRecord {
	converted := &kubeletconfig.ImagePulledRecord{ImageRef: record.ImageRef}
	if !record.LastUpdatedTime.IsZero() {
		converted.LastUpdatedTime = metav1.Time{Time: cutToSecond(record.LastUpdatedTime).Local()}
	}
	if len(record.CredentialMapping) > 0 {
		converted.CredentialMapping = make(map[string]kubeletconfig.ImagePullCredentials, len(record.CredentialMapping))
		for name, credentials := range record.CredentialMapping {
			converted.CredentialMapping[name] = credentialsToKubelet(credentials)
		}
	}
	return converted
}

// cutToSecond rounds down, before 1970 as well.
func cutToSecond(t time.Time) time.Time {
	return time.Unix(t.Unix(), 0).UTC()
}
