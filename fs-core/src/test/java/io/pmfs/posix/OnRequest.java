package io.pmfs.posix;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * A test, or a class of tests, that the short run leaves out: {@code -Dpmfs.KIND=all} runs it, and
 * {@code scripts/test --all} does. The summary of a run lists what was left out.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(OnRequest.Condition.class)
public @interface OnRequest {
  /** The kind, such as {@code cluster}; docs/testing.md lists them. */
  String value();

  /** What is left out, where the name of the class does not say it. */
  String what() default "";

  /** Skips those that were not requested. */
  final class Condition implements ExecutionCondition {
    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
      return AnnotationSupport.findAnnotation(context.getElement(), OnRequest.class)
          .filter(request -> !Requested.is(request.value()))
          .map(
              request ->
                  ConditionEvaluationResult.disabled(
                      Requested.reason(request.value(), request.what())))
          .orElseGet(() -> ConditionEvaluationResult.enabled("requested"));
    }
  }
}
