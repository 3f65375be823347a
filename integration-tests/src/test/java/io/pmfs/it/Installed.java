package io.pmfs.it;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Field;
import java.util.Objects;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.params.Parameter;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * Gives each test an {@link Installation} of its own in this field, before the {@code @BeforeEach}
 * methods, and closes it after the {@code @AfterEach} methods, however the test ended. On a machine
 * that cannot mount, the test is skipped before anything is made.
 */
@Target(ElementType.FIELD)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(Installed.ForEachTest.class)
@interface Installed {
  /** Whether the tests need root. */
  boolean byRoot() default false;

  /**
   * For a class with a {@link BridgeMode} as its parameter: the one mode that every run tests. The
   * tests are also skipped where the machine cannot mount in their mode.
   */
  BridgeMode[] inEveryRun() default {};

  /** Makes and closes the installations. */
  final class ForEachTest implements BeforeEachCallback, AfterEachCallback {
    @Override
    public void beforeEach(ExtensionContext context) throws IllegalAccessException {
      Object test = context.getRequiredTestInstance();
      for (Field field : AnnotationSupport.findAnnotatedFields(test.getClass(), Installed.class)) {
        require(field.getAnnotation(Installed.class), test);
        field.setAccessible(true);
        field.set(test, new Installation());
      }
    }

    private static void require(Installed installed, Object test) {
      for (BridgeMode chosen : installed.inEveryRun()) {
        for (BridgeMode mode :
            AnnotationSupport.findAnnotatedFieldValues(test, Parameter.class, BridgeMode.class)) {
          mode.runsInEveryRunIf(chosen);
          mode.require();
        }
      }
      Machine.requireFuse();
      if (installed.byRoot()) {
        Machine.requireRoot();
      }
    }

    @Override
    public void afterEach(ExtensionContext context) {
      // Null where the test was skipped.
      AnnotationSupport.findAnnotatedFieldValues(
              context.getRequiredTestInstance(), Installed.class, Installation.class)
          .stream()
          .filter(Objects::nonNull)
          .forEach(Installation::close);
    }
  }
}
