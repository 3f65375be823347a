package io.pmfs.cluster.members;

import java.util.List;
import javax.sql.DataSource;
import org.infinispan.remoting.transport.jgroups.JGroupsChannelConfigurator;
import org.jgroups.JChannel;
import org.jgroups.conf.ProtocolConfiguration;
import org.jgroups.util.SocketFactory;

/** Gives Infinispan its channel: it asks once, and ignores a channel that is set directly. */
record OneChannel(JChannel channel) implements JGroupsChannelConfigurator {
  @Override
  public JChannel createChannel(String name) {
    return channel;
  }

  @Override
  public String getName() {
    return "pmfs";
  }

  @Override
  public String getProtocolStackString() {
    return channel.getProtocolStack().printProtocolSpec(false);
  }

  @Override
  public List<ProtocolConfiguration> getProtocolStack() {
    return List.of();
  }

  @Override
  public void setSocketFactory(SocketFactory socketFactory) {
    throw new UnsupportedOperationException("the channel has its own socket factory");
  }

  @Override
  public void setDataSource(DataSource dataSource) {
    throw new UnsupportedOperationException("there is no database");
  }
}
