#include "bindings/cli/examples.h"

#include <utility>

namespace waybill::cli {

std::string ExamplesOf(std::string_view command) {
  constexpr std::pair<std::string_view, const char*> kExamples[] = {
      {"start",
       R"(waybill start --store /var/lib/waybill --kubelet-dir /var/lib/kubelet --cri auto
waybill start --dry-run --kubelet-dir /var/lib/kubelet --cri auto)"},
      {"guard",
       R"(waybill guard --kubelet-dir /var/lib/kubelet --cri auto
waybill guard --status --kubelet-dir /var/lib/kubelet)"},
      {"observe",
       R"(waybill observe --cri auto
waybill observe --begin)"},
      {"preload",
       R"(waybill preload list
waybill preload confirm 'registry.k8s.io/*' --reason 'the image of the node has them'
waybill preload close --all --reason 'nobody knows where they came from')"},
      {"runtimes",
       R"(waybill runtimes show
crictl info | waybill runtimes load --status -)"},
      {"export", R"(waybill export --kubelet-dir /var/lib/kubelet --cri auto)"},
      {"check",
       R"(waybill check registry.example/app:v1 --cri auto
waybill check --image registry.example/app:v1 --image-ref sha256:2c26b46b68ff --secrets secrets.jsonl)"},
      {"explain",
       R"(waybill explain registry.example/app:v1 --cri auto
kubectl get pod app -o json | waybill explain --pod - --cri auto)"},
      {"preview",
       R"(waybill preview --pods pods.json --secrets secrets.json --service-accounts accounts.json)"},
      {"allow", R"(waybill allow registry.example/app:v1 --cri auto)"},
      {"forget",
       R"(waybill forget secret tenant-a/pull
waybill forget namespace tenant-a --dry-run
waybill forget list)"},
      {"reconcile",
       R"(token=$(waybill reconcile --begin)
kubectl get secrets,serviceaccounts -A -o json | waybill reconcile --existing - --token "$token")"},
      {"prune", R"(waybill prune --cri auto)"},
      {"rm", R"(waybill rm 2c26b46b68ff)"},
      {"intent", R"(waybill intent --image registry.example/app:v1)"},
      {"pulled",
       R"(waybill pulled --image registry.example/app:v1 --image-ref sha256:2c26b46b68ff --secrets secrets.jsonl --pull 7)"},
      {"failed", R"(waybill failed --image registry.example/app:v1 --pull 7)"},
      {"pulls",
       R"(waybill pulls list
waybill pulls drop 7 --reason 'the node was off the network')"},
      {"list",
       R"(waybill list
waybill list --namespace tenant-a --older-than 30d)"},
      {"show", R"(waybill show 2c26b46b68ff)"},
      {"stats", R"(waybill stats)"},
      {"metrics", R"(waybill metrics > /var/lib/node_exporter/waybill.prom)"},
      {"dump", R"(waybill dump > store.jsonl)"},
      {"diff", R"(waybill diff /var/backups/waybill.mdb /var/lib/waybill)"},
      {"userns",
       R"(waybill userns list
waybill userns check)"},
      {"streaming",
       R"(waybill streaming lint --kubelet /proc/812/cmdline --kubelet-version v1.36.3
waybill streaming list)"},
      {"verify", R"(waybill verify)"},
      {"trust",
       R"(waybill trust
waybill trust --clear --reason 'the disk is whole again' --cri auto)"},
      {"backup",
       R"(waybill backup
waybill backup /var/backups/waybill.mdb)"},
      {"restore",
       R"(waybill restore
waybill restore /var/backups/waybill.mdb --dry-run)"},
      {"migrate", R"(waybill migrate --dry-run)"},
      {"advise", R"(waybill advise)"},
      {"manifest", R"(waybill manifest --index index.json --platform linux/amd64)"},
      {"hash", R"(waybill hash --registry registry.example < ~/.docker/config.json)"},
      {"completion", R"(waybill completion bash > /etc/bash_completion.d/waybill)"},
      {"man", R"(waybill man guard | man -l -)"},
  };
  for (const auto& [name, text] : kExamples) {
    if (name == command) return text;
  }
  return {};
}

}  // namespace waybill::cli
