package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** Writable mounts whose tiers have no room: because of other programs, or of a slow source. */
final class FullTierIT {
  @Installed(byRoot = true)
  private Installation pmfs;

  private static Command shell(MountedPmfs mount, String script, String... arguments) {
    String[] words = new String[5 + arguments.length];
    words[0] = "sh";
    words[1] = "-euc";
    words[2] = "cd -- \"$1\"; " + script;
    words[3] = "-";
    words[4] = mount.mountpoint().toString();
    System.arraycopy(arguments, 0, words, 5, arguments.length);
    return Command.run(words);
  }

  private static String tree(Path root) {
    return Command.run(
            "sh",
            "-euc",
            "cd -- \"$1\"; find . -name '.pmfs-tmp-*' -prune"
                + " -o -type d -printf '%P %m\\n'"
                + " -o -printf '%P %y %m %s\\n' | sort;"
                + " find . -name '.pmfs-tmp-*' -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum",
            "-",
            root.toString())
        .expect(0)
        .out();
  }

  @Test
  @OnRequest("cases")
  void tier_thatOthersFill_sendsFilesOn() {
    Path source = pmfs.directory("source");
    Path tier = pmfs.scratch().tmpfs("tier", "size=8m,nr_inodes=60");
    Path second = pmfs.scratch().tmpfs("second", "size=8m,nr_inodes=60");
    for (String[] tiers :
        new String[][] {
          {"--tier", "ssd:" + tier + ":100%"},
          {"--tier", "ssd:" + tier + ":100%", "--tier", "ssd:" + second + ":100%"}
        }) {
      String[] options = new String[tiers.length + 3];
      options[0] = "--writable";
      options[1] = "--keep-free";
      options[2] = "0%";
      System.arraycopy(tiers, 0, options, 3, tiers.length);
      try (MountedPmfs mount = pmfs.mount(source, options)) {
        shell(
                mount,
                """
                echo first >kept; echo first >gone; echo first >cut; echo first >over
                exec 3>open; echo open >&3
                dd if=/dev/zero of="$2/fill" bs=64k status=none 2>/dev/null || true
                i=0; while (: >"$2/i$i") 2>/dev/null; do i=$((i + 1)); done
                for i in 1 2 3 4 5 6 7 8; do mkdir d$i; echo new >d$i/new; done
                echo more >>kept; rm gone; truncate -s 2 cut; : >over; echo again >over
                fallocate -l 100000 room; head -c 3000000 /dev/urandom >large; cp large copy
                echo more >&3; exec 3>&-
                ln large linked; mv copy moved; stat room large >/dev/null
                test "$(cat kept)" = "first
                more"; cmp large moved
                """,
                tier.toString())
            .expect(0);
        pmfs.run("drain", mount.mountpoint().toString()).expect(0);
        assertThat(tree(source)).isEqualTo(tree(mount.mountpoint()));
        assertThat(source.resolve("open")).hasContent("open\nmore\n");
        shell(
            mount,
            "rm -rf d? kept cut over open room large linked moved; rm -f \"$2\"/*",
            tier.toString());
        pmfs.run("umount", mount.mountpoint().toString()).expect(0);
        mount.ended();
      }
    }
  }

  @Test
  @OnRequest("cases")
  void state_onADiskThatOthersFill_letsRemovalsAndTheDrainGoOn() {
    Path source = pmfs.directory("source");
    Path state = pmfs.scratch().tmpfs("state", "size=48m");
    try (MountedPmfs mount = pmfs.mount(source, "--writable", "--state-dir", state.toString())) {
      String point = mount.mountpoint().toString();
      shell(
              mount,
              """
              for i in $(seq 100); do echo content >f$i; done
              dd if=/dev/zero of="$2/fill" bs=64k status=none 2>/dev/null || true
              i=0; while mkdir d$i 2>/dev/null; do i=$((i + 1)); test $i -lt 50000; done
              sleep 2
              rm f1 f2 f3; truncate -s 0 f4; rmdir d0
              if mkdir more 2>/dev/null; then exit 1; fi
              """,
              state.toString())
          .expect(0);
      pmfs.run("drain", point);
      assertThat(source.resolve("f5")).hasContent("content\n");
      assertThat(source.resolve("f4")).isEmptyFile();
      assertThat(source.resolve("f3")).doesNotExist();
      Command status = pmfs.run("status", point);
      status.expect(4);
      assertThat(status.err()).contains(state.toString(), "No space left");
      shell(mount, "rm \"$2/fill\"; sleep 2; mkdir more", state.toString()).expect(0);
      pmfs.run("drain", point).expect(0);
      pmfs.run("status", point).expect(0);
    }
  }

  @Test
  @OnRequest("cases")
  void stat_whileManyWritersWaitForTheSource_isAnswered() {
    Path source = pmfs.directory("source");
    Path tier = pmfs.scratch().tmpfs("tier", "size=16m");
    try (MountedPmfs mount =
        pmfs.mount(
            source,
            "--writable",
            "--keep-free",
            "0%",
            "--drain-rate",
            "1M",
            "--tier",
            "ssd:" + tier + ":4M")) {
      Command looked =
          shell(
              mount,
              """
              head -c 4M /dev/zero >first
              for i in $(seq 110); do head -c 64k /dev/zero >w$i 2>/dev/null & done
              sleep 1
              for i in 1 2 3 4 5; do timeout 1 stat none$i 2>&1 | grep -q 'No such file' && echo seen; done
              wait
              """);
      looked.expect(0);
      assertThat(looked.out()).isEqualTo("seen\n".repeat(5));
      pmfs.run("drain", mount.mountpoint().toString()).expect(0);
    }
  }
}
