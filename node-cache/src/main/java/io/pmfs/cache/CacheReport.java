package io.pmfs.cache;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * What the cache of a node reports about itself.
 *
 * @param room the copies and their users; of other users only root and the cache itself hear
 * @param connections mounts that are connected
 * @param copying copies being made
 * @param waiting files that wait for that
 * @param answered questions answered with a copy, whole or growing
 * @param refused questions answered without one
 * @param copiedBytes bytes read from the source
 * @param failed copies that could not be made
 * @param trouble a thread of the cache that has failed lately, and why; null if there is none
 */
public record CacheReport(
    Room room,
    int connections,
    int copying,
    int waiting,
    long answered,
    long refused,
    long copiedBytes,
    long failed,
    @Nullable String trouble) {
  /** In the place of a uid: copies that an earlier run left, whose user is not known. */
  public static final int NOBODY = CopyKey.NOBODY;

  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();

  /**
   * The room of the copies.
   *
   * @param capacityFiles how many inodes of the disk they may take
   * @param leftOpen copies that mounts say they closed, and that somebody has open
   * @param users by uid; of the copies of {@link #NOBODY} it is not known
   */
  public record Room(
      long capacityBytes,
      long usedBytes,
      long capacityFiles,
      long usedFiles,
      long copies,
      long leftOpen,
      long evicted,
      Map<Integer, OfUser> users) {
    Room only(int user) {
      Map<Integer, OfUser> own = new TreeMap<>(users);
      own.keySet().retainAll(Set.of(user));
      return new Room(
          capacityBytes, usedBytes, capacityFiles, usedFiles, copies, leftOpen, evicted, own);
    }
  }

  /**
   * One user.
   *
   * @param usedBytes the copies made for this user
   * @param usedFiles the inodes of these
   * @param openBytes the copies that this user's mounts may have open
   * @param leftOpen copies that they say they closed, and that somebody has open
   */
  public record OfUser(long usedBytes, long usedFiles, long openBytes, long leftOpen) {}

  CacheReport only(int user) {
    return new CacheReport(
        room.only(user),
        connections,
        copying,
        waiting,
        answered,
        refused,
        copiedBytes,
        failed,
        trouble);
  }

  public String toJson() {
    return GSON.toJson(this);
  }

  static @Nullable CacheReport ofJson(String json) {
    return GSON.fromJson(json, CacheReport.class);
  }
}
