import { own } from '#server/kernel/own'

/** Frameworks of the JVM by a text that their build files hold; those built on others first. */
const FRAMEWORKS: readonly (readonly [string, RegExp])[] = [
  ['jhipster', /tech\.jhipster|io\.github\.jhipster/],
  ['spring-boot', /spring-boot|org\.springframework\.boot/],
  ['quarkus', /io\.quarkus/],
  ['micronaut', /io\.micronaut/],
  ['ktor', /io\.ktor|ktor-server/],
  ['helidon', /io\.helidon/],
  ['dropwizard', /io\.dropwizard|dropwizard-core/],
  ['vertx', /io\.vertx/],
  ['javalin', /io\.javalin|\bjavalin\b/],
  ['spark', /com\.sparkjava/],
  ['http4k', /org\.http4k/],
  ['grails', /org\.grails/],
  ['play', /com\.typesafe\.play|org\.playframework|PlayScala|PlayJava/],
  ['jooby', /io\.jooby/],
]

/** Framework of a build file's text. */
export function jvmFramework(text: string): string | null {
  return FRAMEWORKS.find(([, pattern]) => pattern.test(text))?.[0] ?? null
}

/** Each framework reads its port from a variable or property of its own; they do no harm to others. */
export function portSettings(framework: string | null, port: number): Record<string, string> {
  const text = String(port)
  const settings: Record<string, Record<string, string>> = {
    'spring-boot': { SERVER_PORT: text },
    jhipster: { SERVER_PORT: text },
    grails: { SERVER_PORT: text },
    quarkus: { QUARKUS_HTTP_PORT: text, QUARKUS_HTTP_HOST: '0.0.0.0' },
    micronaut: { MICRONAUT_SERVER_PORT: text, MICRONAUT_SERVER_HOST: '0.0.0.0' },
    helidon: { SERVER_PORT: text, SERVER_HOST: '0.0.0.0' },
  }
  return own(settings, framework ?? '') ?? {}
}
