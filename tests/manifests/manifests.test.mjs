// config/kubernetes.yaml against Kubernetes' own schema, config/compose.yaml against its rules; both against
// the real binary: the configuration in them loads, what they type is run, and what they ask is answered.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import * as apps from 'kubernetes-models/apps/v1';
import * as batch from 'kubernetes-models/batch/v1';
import * as policy from 'kubernetes-models/policy/v1';
import * as core from 'kubernetes-models/v1';
import * as monitoring from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { parse, parseAllDocuments } from 'yaml';
import { binary, story } from '../e2e/world.mjs';
import { Program, eventually, freePort, run } from '../e2e/util.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (name) => readFileSync(path.join(root, name), 'utf8');
const models = { v1: core, 'apps/v1': apps, 'batch/v1': batch, 'policy/v1': policy, 'monitoring.coreos.com/v1': monitoring };
const objects = parseAllDocuments(read('config/kubernetes.yaml')).map((document) => {
  assert.deepEqual(document.errors, []);
  return document.toJS();
});
const of = (kind, name) => objects.find((o) => o.kind === kind && (!name || o.metadata.name === name));
const deployment = of('Deployment');
const pod = deployment.spec.template.spec;
const [daemon] = pod.containers;
const job = of('Job').spec.template.spec;
const configuration = of('ConfigMap').data['outboxd.yaml'];
const seconds = (text) => Number(/^(\d+)s$/.exec(text)[1]);
const compose = parse(read('config/compose.yaml'), { merge: true });
const dockerfile = read('Dockerfile');
const uid = Number(/^USER (\d+)/m.exec(dockerfile)[1]);

test('Kubernetes: every object is valid by its schema, and there is one of each that is needed', () => {
  for (const object of objects) {
    const Model = models[object.apiVersion]?.[object.kind];
    assert.ok(Model, `${object.apiVersion} ${object.kind}`);
    new Model(object).validate();
  }
  // The schema does catch mistakes.
  assert.throws(() => new apps.Deployment({ ...deployment, spec: { ...deployment.spec, replicas: 'two' } }).validate());
  assert.deepEqual(objects.map((o) => o.kind).sort(), ['ConfigMap', 'Deployment', 'Job', 'PodDisruptionBudget', 'Secret', 'Secret', 'Service', 'ServiceAccount', 'ServiceMonitor']);
});

test('Kubernetes: names, labels and ports refer to what is there', () => {
  const labels = deployment.spec.template.metadata.labels;
  for (const selector of [deployment.spec.selector.matchLabels, of('PodDisruptionBudget').spec.selector.matchLabels, of('Service').spec.selector, pod.topologySpreadConstraints[0].labelSelector.matchLabels]) {
    assert.deepEqual(selector, labels);
  }
  assert.notDeepEqual(of('Job').spec.template.metadata.labels, labels, 'the job is not one of the daemons');
  assert.deepEqual(of('ServiceMonitor').spec.selector.matchLabels, of('Service').metadata.labels);
  const [{ name: port, containerPort }] = daemon.ports;
  for (const probe of [daemon.startupProbe, daemon.livenessProbe, daemon.readinessProbe]) assert.equal(probe.httpGet.port, port);
  assert.equal(of('Service').spec.ports[0].targetPort, port);
  assert.equal(of('ServiceMonitor').spec.endpoints[0].port, of('Service').spec.ports[0].name);
  assert.equal(parse(configuration).admin.listen, `0.0.0.0:${containerPort}`);
  for (const { env } of [daemon, ...job.containers]) {
    for (const { valueFrom } of env) {
      if (valueFrom?.secretKeyRef) assert.ok(valueFrom.secretKeyRef.key in of('Secret', valueFrom.secretKeyRef.name).stringData, valueFrom.secretKeyRef.key);
    }
  }
  for (const mount of daemon.volumeMounts) {
    const volume = pod.volumes.find((v) => v.name === mount.name);
    assert.ok(volume.configMap ? of('ConfigMap', volume.configMap.name) : of('Secret', volume.secret.secretName), mount.name);
  }
  assert.equal(pod.serviceAccountName, of('ServiceAccount').metadata.name);
  // Every ${env:…} is set, and token_file lies in the mounted secret.
  for (const [, name] of configuration.matchAll(/\$\{env:(\w+)/g)) assert.ok(daemon.env.some((e) => e.name === name), name);
  const credentials = daemon.volumeMounts.find((m) => m.name === 'credentials').mountPath;
  const file = parse(configuration).admin.token_file;
  assert.equal(path.dirname(file), credentials);
  assert.ok(path.basename(file) in of('Secret', 'outboxd-credentials').stringData);
  assert.equal(daemon.env.find((e) => e.name === 'CREDENTIALS_DIRECTORY').value, credentials);
});

test('Kubernetes: not root, nothing to write, time to drain, never none at once', () => {
  for (const spec of [pod, job]) {
    assert.equal(spec.securityContext.runAsNonRoot, true);
    assert.equal(spec.securityContext.runAsUser, uid, 'the user of the image');
    assert.equal(spec.securityContext.seccompProfile.type, 'RuntimeDefault');
    assert.equal(spec.automountServiceAccountToken, false);
    for (const { securityContext, image } of spec.containers) {
      assert.deepEqual(securityContext, { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
      assert.equal(image, `outboxd:${/project\(outboxd VERSION ([\d.]+)/.exec(read('CMakeLists.txt'))[1]}`);
    }
  }
  assert.ok(pod.terminationGracePeriodSeconds > seconds(parse(configuration).worker.drain_timeout));
  assert.equal(deployment.spec.strategy.rollingUpdate.maxUnavailable, 0);
  assert.ok(deployment.spec.replicas > of('PodDisruptionBudget').spec.minAvailable);
  // The two pods must not be one node's in the end, and readiness must not restart anybody.
  assert.equal(daemon.livenessProbe.httpGet.path, '/livez');
  assert.equal(daemon.readinessProbe.httpGet.path, '/readyz');
});

test('compose: services, secrets, configs and volumes refer to what is there', () => {
  const { services } = compose;
  assert.deepEqual(Object.keys(services), ['postgres', 'migrate', 'outboxd']);
  for (const [name, service] of Object.entries(services)) {
    for (const secret of service.secrets ?? []) assert.ok(compose.secrets[secret], `${name}: ${secret}`);
    for (const { source } of service.configs ?? []) assert.ok(compose.configs[source], `${name}: ${source}`);
    for (const volume of service.volumes ?? []) assert.ok(volume.split(':')[0] in compose.volumes, `${name}: ${volume}`);
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      assert.ok(services[other], `${name}: ${other}`);
      if (condition === 'service_healthy') assert.ok(services[other].healthcheck, `${other} is never healthy`);
      else assert.equal(condition, 'service_completed_successfully');
    }
  }
  assert.deepEqual(services.migrate.depends_on, { postgres: { condition: 'service_healthy' } });
  assert.deepEqual(services.outboxd.depends_on, { migrate: { condition: 'service_completed_successfully' } });
  assert.equal(services.migrate.restart, 'no', 'a step that is restarted never completes');
  for (const name of ['migrate', 'outboxd']) {
    assert.equal(services[name].image, services.outboxd.image);
    assert.deepEqual([services[name].cap_drop, services[name].read_only, services[name].security_opt], [['ALL'], true, ['no-new-privileges:true']]);
  }
  for (const port of services.outboxd.ports) assert.match(port, /^127\.0\.0\.1:/, 'open to this machine alone');
  const inside = parse(compose.configs.outboxd.content.replaceAll('$$', '$'));
  assert.ok(seconds(services.outboxd.stop_grace_period) > seconds(inside.worker.drain_timeout));
  assert.equal(services.outboxd.ports[0].split(':').at(-1), inside.admin.listen.split(':')[1]);
  // What is not doubled would be compose's own variable.
  assert.doesNotMatch(compose.configs.outboxd.content.replaceAll('$$', ''), /\$/);
  assert.match(read('.gitignore'), /^\/config\/secrets\/$/m);
});

// As a proxy, a probe or Prometheus would: with the Host header of whoever they think it is.
const ask = (port, what, host) => new Promise((resolve, reject) => {
  http.get({ host: '127.0.0.1', port, path: what, headers: { Host: host } }, (answer) => { answer.resume(); resolve(answer.statusCode); }).on('error', reject);
});

// Runs migrate and then the daemon as a container would, in this machine's places.
async function serve(w, { text, migrate, args, env, hosts, answers }) {
  const port = await freePort();
  const file = w.write('outboxd.yaml', text.replace(/0\.0\.0\.0:9464/, `127.0.0.1:${port}`));
  const here = (words) => words.map((word) => (word === '/etc/outboxd/outboxd.yaml' ? file : word));
  const checked = await run(binary, ['check-config', '--strict', file], { env });
  assert.equal(checked.code, 0, checked.text);
  const migrated = await run(binary, here(migrate), { env });
  assert.equal(migrated.code, 0, migrated.text);
  const daemon = new Program(binary, here(args), { env });
  try {
    for (const host of hosts) {
      for (const what of answers) {
        await eventually(`${what} answers ${host}`, async () => {
          if (daemon.ended) throw new Error(daemon.output);
          return (await ask(port, what, host)) === 200;
        }, 30_000);
      }
    }
    const done = await run(binary, ['enqueue', 'note', '--arguments', '{"text": "hello"}', '--run-id', 'first', '--wait', '20s', '--database', w.dsn], { env });
    assert.equal(done.code, 0, done.text);
  } finally {
    assert.equal((await daemon.stop()).code, 0, daemon.output);
  }
}

story('Kubernetes: what the pods run is run, the probes are answered under the pod\'s address', async (w) => {
  const token = w.write('admin_token', of('Secret', 'outboxd-credentials').stringData.admin_token);
  await serve(w, {
    text: configuration.replaceAll('/run/credentials', path.dirname(token)), migrate: job.containers[0].args, args: daemon.args,
    env: { ...w.env, POD_NAME: 'outboxd-0', POD_IP: '10.1.2.3', CREDENTIALS_DIRECTORY: path.dirname(token) },
    hosts: ['10.1.2.3:9464'],
    answers: [daemon.startupProbe.httpGet.path, daemon.livenessProbe.httpGet.path, daemon.readinessProbe.httpGet.path, of('ServiceMonitor').spec.endpoints[0].path],
  });
});

story('compose: what the containers run is run', async (w) => {
  const secrets = { postgres_password: w.write('postgres_password', 'made-up\n'), admin_token: w.write('admin_token', 'a-long-enough-token-1234\n') };
  let text = compose.configs.outboxd.content.replaceAll('$$', '$');
  for (const [name, file] of Object.entries(secrets)) text = text.replaceAll(`/run/secrets/${name}`, file);
  const dsn = /dsn: "([^"]*)"/.exec(text)[1];
  assert.match(dsn, /^host=postgres dbname=planner user=planner password=\$\{file:/);
  await serve(w, {
    text: text.replace('host=postgres dbname=planner user=planner', w.dsn), migrate: compose.services.migrate.command, args: compose.services.outboxd.command,
    env: w.env, hosts: ['localhost:9464', 'outboxd:9464'], answers: ['/livez', '/readyz', '/metrics'],
  });
});
