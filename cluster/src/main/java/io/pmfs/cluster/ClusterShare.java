package io.pmfs.cluster;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.stage.copies.RemoteCopies;
import io.pmfs.stage.copies.Share;

record ClusterShare(Owners owners, Namespace namespace, RemoteCopies remoteCopies)
    implements Share {
  @Override
  public boolean isOwn(Inode inode) {
    FileName path = namespace.path(inode.number());
    return path == null || owners.isOwn(path);
  }
}
