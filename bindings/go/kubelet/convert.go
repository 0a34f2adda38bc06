package kubelet

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
)

// VerificationPolicy returns the policy of the kubelet's configuration: the fields
// imagePullCredentialsVerificationPolicy and preloadedImagesVerificationAllowlist. As in the kubelet,
// the allowlist counts only with NeverVerifyAllowlistedImages, and opens every image that it names.
func VerificationPolicy(policy kubeletconfig.ImagePullCredentialsVerificationPolicy, allowlist []string) (waybill.Policy, error) {
	verification := waybill.Verification(policy)
	known := []waybill.Verification{waybill.NeverVerify, waybill.NeverVerifyPreloadedImages, waybill.NeverVerifyAllowlistedImages, waybill.AlwaysVerify}
	if !slices.Contains(known, verification) {
		return waybill.Policy{}, fmt.Errorf("unknown image pull credential verification policy: %v", policy)
	}
	if verification != waybill.NeverVerifyAllowlistedImages {
		allowlist = nil
	}
	return waybill.Policy{Verification: verification, Allowlist: allowlist}, nil
}

// ImagesOnNode converts the runtime's list of images. The result is never nil: nil would mean that the
// images are unknown, an empty list means that there are none.
func ImagesOnNode(images []kubecontainer.Image) []waybill.ListedImage {
	converted := make([]waybill.ListedImage, 0, len(images))
	for _, image := range images {
		converted = append(converted, waybill.ListedImage{
			ID:             image.ID,
			RepoTags:       image.RepoTags,
			RepoDigests:    image.RepoDigests,
			RuntimeHandler: image.Spec.RuntimeHandler,
			Pinned:         image.Pinned,
			Bytes:          max(image.Size, 0),
		})
	}
	return converted
}

func secretToStore(secret kubeletconfig.ImagePullSecret) waybill.Secret {
	return waybill.Secret{Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, Hash: secret.CredentialHash}
}

func accountToStore(account kubeletconfig.ImagePullServiceAccount) waybill.ServiceAccount {
	return waybill.ServiceAccount{Namespace: account.Namespace, Name: account.Name, UID: account.UID}
}

func secretsToStore(secrets []kubeletconfig.ImagePullSecret) []waybill.Secret {
	converted := make([]waybill.Secret, len(secrets))
	for i, secret := range secrets {
		converted[i] = secretToStore(secret)
	}
	return converted
}

func credentialsToStore(credentials *kubeletconfig.ImagePullCredentials) *waybill.PulledWith {
	if credentials == nil {
		return nil
	}
	converted := &waybill.PulledWith{EveryPod: credentials.NodePodsAccessible, Secrets: secretsToStore(credentials.KubernetesSecrets)}
	for _, account := range credentials.KubernetesServiceAccounts {
		converted.ServiceAccounts = append(converted.ServiceAccounts, accountToStore(account))
	}
	return converted
}

func credentialsToKubelet(credentials waybill.PulledWith) kubeletconfig.ImagePullCredentials {
	converted := kubeletconfig.ImagePullCredentials{NodePodsAccessible: credentials.EveryPod}
	for _, s := range credentials.Secrets {
		converted.KubernetesSecrets = append(converted.KubernetesSecrets,
			kubeletconfig.ImagePullSecret{UID: s.UID, Namespace: s.Namespace, Name: s.Name, CredentialHash: s.Hash})
	}
	for _, a := range credentials.ServiceAccounts {
		converted.KubernetesServiceAccounts = append(converted.KubernetesServiceAccounts,
			kubeletconfig.ImagePullServiceAccount{UID: a.UID, Namespace: a.Namespace, Name: a.Name})
	}
	return converted
}

// recordToStore cuts the time to the second, as the kubelet's files do.
func recordToStore(record *kubeletconfig.ImagePulledRecord) waybill.PulledRecord {
	converted := waybill.PulledRecord{ImageRef: record.ImageRef, Credentials: make(map[string]waybill.PulledWith, len(record.CredentialMapping))}
	if !record.LastUpdatedTime.IsZero() {
		converted.Updated = cutToSecond(record.LastUpdatedTime.Time)
	}
	for name, credentials := range record.CredentialMapping {
		converted.Credentials[name] = *credentialsToStore(&credentials)
	}
	return converted
}

// recordToKubelet returns what reading the kubelet's own file would: times in whole seconds and in
// local time, and nil for empty fields.
func recordToKubelet(record waybill.PulledRecord) *kubeletconfig.ImagePulledRecord {
	converted := &kubeletconfig.ImagePulledRecord{ImageRef: record.ImageRef}
	if !record.Updated.IsZero() {
		converted.LastUpdatedTime = metav1.Time{Time: cutToSecond(record.Updated).Local()}
	}
	if len(record.Credentials) > 0 {
		converted.CredentialMapping = make(map[string]kubeletconfig.ImagePullCredentials, len(record.Credentials))
		for name, credentials := range record.Credentials {
			converted.CredentialMapping[name] = credentialsToKubelet(credentials)
		}
	}
	return converted
}

// cutToSecond rounds down, before 1970 as well.
func cutToSecond(t time.Time) time.Time {
	return time.Unix(t.Unix(), 0).UTC()
}
