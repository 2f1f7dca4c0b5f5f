// The examples of docs/examples say to each process what rank it is, as launchers do: their scripts are run with a
// stand-in for hexad, and the engine is asked what it makes of the environments that it was given.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "core/cluster/process/launch.hpp"
#include "lib/yaml/file.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;

namespace {

namespace fs = std::filesystem;

const fs::path& examples() {
  static const fs::path folder = fs::path(std::getenv("HEXAD_SOURCE_DIR")) / "docs/examples";
  return folder;
}

// A folder with programs for PATH, whose first lines are bash's.
class Programs {
 public:
  void add(const std::string& name, const std::string& script) {
    const fs::path file = dir_.write(name, "#!/bin/bash\n" + script);
    fs::permissions(file, fs::perms::owner_all);
  }
  // The exit status of a script of bash that finds these programs, with these variables.
  int run(const std::string& script, const std::map<std::string, std::string>& variables) const {
    std::string command = "cd " + dir_.path().string() + " && env PATH=" + dir_.path().string() + ":$PATH";
    for (const auto& [name, value] : variables) command += fmt::format(" {}=\"{}\"", name, value);
    const int status = std::system((command + " bash " + dir_.write("script.sh", script).string()).c_str());
    return WEXITSTATUS(status);
  }
  std::string said(const std::string& file) const { return toy::read_text(dir_ / file); }
  fs::path operator/(const std::string& name) const { return dir_ / name; }

 private:
  toy::TempDir dir_;
};

constexpr const char* kNames[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};

// What the engine makes of an environment that `env` wrote into a file.
std::optional<cluster::Launch> launch_of(const std::string& environment) {
  for (const char* name : kNames) {
    const size_t at = ("\n" + environment).find(std::string("\n") + name + "=");
    if (at == std::string::npos) continue;
    const size_t begin = at + std::string(name).size() + 1;
    ::setenv(name, environment.substr(begin, environment.find('\n', begin) - begin).c_str(), 1);
  }
  const auto launch = cluster::launched();
  for (const char* name : kNames) ::unsetenv(name);
  return launch;
}

const yaml::Node& container_of(const yaml::Node& job) { return job.at("spec.template.spec.containers.0"); }

std::map<std::string, std::string> variables_of(const yaml::Node& container) {
  std::map<std::string, std::string> found;
  for (const yaml::Node& variable : container.at("env").items())
    found[variable.as_string("name")] = variable.as_string("value");
  return found;
}

int64_t gpus_of(const yaml::Node& container) {
  return container.at("resources.limits").child("nvidia.com/gpu")->as_int();
}

// Which /dev/shm a pod has: the volume in memory that is mounted there.
bool has_shared_memory(const yaml::Node& job) {
  std::set<std::string> in_memory;
  for (const yaml::Node& volume : job.at("spec.template.spec.volumes").items())
    if (volume.optional_string("emptyDir.medium") == "Memory") in_memory.insert(volume.as_string("name"));
  for (const yaml::Node& mount : container_of(job).at("volumeMounts").items())
    if (mount.as_string("mountPath") == "/dev/shm") return in_memory.contains(mount.as_string("name"));
  return false;
}

// The commands of a page that begin with these words, each in one line.
std::vector<std::string> commands(const fs::path& page, const std::string& words) {
  const std::string text = toy::read_text(page);
  std::vector<std::string> found;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) {
    size_t end = text.find('\n', at);
    while (end != text.npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
    found.push_back(text.substr(at, end - at));
  }
  return found;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("each example runs as a user who may write to the folder that it is given") {
  int jobs = 0, runs = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(examples())) {
    if (!file.path().filename().string().starts_with("kubernetes")) continue;
    INFO(file.path().string());
    const yaml::Node job = yaml::read_file(file.path()), &user = job.at("spec.template.spec.securityContext");
    for (const char* which : {"runAsUser", "runAsGroup", "fsGroup"}) CHECK(user.as_int(which) == 1000);
    ++jobs;
  }
  CHECK(jobs == 2);
  const fs::path root = examples().parent_path().parent_path();
  for (const fs::path& page : {root / "README.md", root / "docs/install.md", examples() / "compose.yaml"}) {
    for (const std::string& command : commands(page, "docker run ")) {
      if (!has(command, "-v \"$PWD:")) continue;
      CAPTURE(command);
      CHECK(has(command, "--user \"$(id -u):$(id -g)\" "));
      ++runs;
    }
  }
  CHECK(runs == 5);
  CHECK(has(toy::read_text(root / "tools/package/Dockerfile"), "ENV HOME=/tmp "));  // one that every user may write to
  const fs::path compose = examples() / "compose.yaml";
  CHECK(commands(compose, "OWNER=\"$(id -u):$(id -g)\" docker compose ").size() == 1);
  const yaml::Node file = yaml::read_file(compose), &train = file.at("services.train");
  CHECK(train.as_string("user") == "${OWNER:-1000:1000}");
  CHECK(train.as_string("environment.HOME") == "/tmp");
}

TEST_CASE("the Job of several hosts makes a rank of every process of every pod") {
  const yaml::Node job = yaml::read_file(examples() / "kubernetes_hosts.yaml"), &container = container_of(job);
  std::map<std::string, std::string> variables = variables_of(container);
  const int hosts = std::stoi(variables.at("HOSTS")), gpus = std::stoi(variables.at("GPUS"));
  CHECK(job.as_string("spec.completionMode") == "Indexed");
  CHECK(job.as_int("spec.completions") == hosts);
  CHECK(job.as_int("spec.parallelism") == hosts);
  CHECK(gpus_of(container) == gpus);
  CHECK(has_shared_memory(job));
  REQUIRE(container.as_strings("command") == std::vector<std::string>{"bash", "-c"});

  Programs programs;
  programs.add("hexad", "env > rank_$RANK\necho \"$@\" > words_$RANK\n");
  std::set<std::string> jobs;
  for (int host = 0; host < hosts; ++host) {
    variables["JOB_COMPLETION_INDEX"] = std::to_string(host);
    REQUIRE(programs.run(container.as_strings("args").at(0), variables) == 0);
    for (int gpu = 0; gpu < gpus; ++gpu) {
      const int rank = host * gpus + gpu;
      INFO("rank " << rank);
      const auto launch = launch_of(programs.said(fmt::format("rank_{}", rank)));
      REQUIRE(launch);
      CHECK(launch->rank == rank);
      CHECK(launch->world == hosts * gpus);
      CHECK(launch->local_rank == gpu);
      CHECK(launch->local_world == gpus);
      jobs.insert(launch->job);
      CHECK(programs.said(fmt::format("words_{}", rank)) ==
            fmt::format("train /data/run.yaml cluster.num_nodes={} cluster.gpus_per_node={}\n", hosts, gpus));
    }
  }
  CHECK(jobs.size() == 1);  // by which they meet
}

TEST_CASE("a pod of several ranks ends with the first one's error, and hands a signal to all") {
  const yaml::Node job = yaml::read_file(examples() / "kubernetes_hosts.yaml"), &container = container_of(job);
  const std::string script = container.as_strings("args").at(0);
  std::map<std::string, std::string> variables = variables_of(container);
  variables["JOB_COMPLETION_INDEX"] = "0", variables["GPUS"] = "2";
  Programs failing;
  failing.add("hexad", "[ $RANK = 1 ] || exit 2\nsleep 0.2\nexit 4\n");
  CHECK(failing.run(script, variables) == 2);
  Programs told;
  told.add("hexad",
           "trap 'touch told_$RANK; exit 130' TERM\ntouch up_$RANK\nfor ((i = 0; i < 600; ++i)); do sleep 0.05; "
           "done\n");
  const std::string signal = "(until [ -e up_0 ] && [ -e up_1 ]; do sleep 0.05; done; kill -TERM $$) &\ndisown\n";
  CHECK(told.run(signal + script, variables) == 130);
  CHECK(fs::exists(told / "told_0"));
  CHECK(fs::exists(told / "told_1"));
}

TEST_CASE("the Job of one host starts as many ranks as its pod has GPUs") {
  const yaml::Node job = yaml::read_file(examples() / "kubernetes_host.yaml"), &container = container_of(job);
  CHECK(container.as_strings("command") ==
        std::vector<std::string>{"hexad", "train", "/data/run.yaml",
                                 fmt::format("cluster.gpus_per_node={}", gpus_of(container))});
  CHECK(has_shared_memory(job));
}

TEST_CASE("the service of Compose has all GPUs and more shared memory than containers have") {
  const yaml::Node compose = yaml::read_file(examples() / "compose.yaml"), &train = compose.at("services.train");
  CHECK(train.as_strings("entrypoint") == std::vector<std::string>{"hexad", "train"});
  CHECK(train.as_string("shm_size") == "16gb");
  const yaml::Node& device = train.at("deploy.resources.reservations.devices.0");
  CHECK(device.as_string("count") == "all");
  CHECK(device.as_strings("capabilities") == std::vector<std::string>{"gpu"});
}

TEST_CASE("the sbatch file goes to the queue again when the run was interrupted and saved, and else ends as it ended") {
  const std::string script = toy::read_text(examples() / "slurm.sbatch");
  std::map<std::string, std::string> variables = {
      {"SLURM_JOB_NUM_NODES", "3"}, {"SLURM_NTASKS_PER_NODE", "8"}, {"SLURM_JOB_ID", "17"}};
  for (const int code : {0, 2, 4, 130}) {
    INFO("srun ends with " << code);
    Programs programs;
    programs.add("srun", fmt::format("echo \"$@\" > words\nexit {}\n", code));
    programs.add("scontrol", "echo \"$@\" > asked\n");
    CHECK(programs.run(script, variables) == code);
    CHECK(programs.said("words").ends_with("hexad train cluster.num_nodes=3 cluster.gpus_per_node=8\n"));
    CHECK(fs::exists(programs / "asked") == (code == 130));
    if (code == 130) CHECK(programs.said("asked") == "requeue 17\n");
  }
}
