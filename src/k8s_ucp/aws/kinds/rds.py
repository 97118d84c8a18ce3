"""RDS: databases."""

from __future__ import annotations

from collections.abc import Mapping

from k8s_ucp.aws.kind import AwsKind, Describe, Found, Parameters, by_name, fields_of, kind_of
from k8s_ucp.managed.external import Declared

DATABASE_SERVER = "database"
"""The program behind an instance."""


def _database_details(declared: Declared, found: Found) -> Mapping[str, str]:
    endpoint = found.get("Endpoint") or {}
    if not endpoint.get("Address"):
        return {}
    return {
        "host": str(endpoint["Address"]),
        "port": str(endpoint.get("Port", 5432)),
        "username": str(found.get("MasterUsername", "")),
        "password": str(declared.parameters.get("password", "")),
        "endpoint": f"{endpoint['Address']}:{endpoint.get('Port', 5432)}",
    }


def _changed_database(declared: Declared) -> Parameters:
    asked = declared.parameters
    wanted = {
        "DBInstanceClass": asked.get("instanceClass"),
        "AllocatedStorage": asked.get("allocatedStorage"),
        "EngineVersion": asked.get("engineVersion"),
        "BackupRetentionPeriod": asked.get("backupRetentionPeriod"),
        "DeletionProtection": asked.get("deletionProtection"),
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    return {"DBInstanceIdentifier": declared.name, "ApplyImmediately": True, **given}


def _deleted_database(declared: Declared) -> Parameters:
    asked = declared.parameters
    if asked.get("skipFinalSnapshot"):
        return {"DBInstanceIdentifier": declared.name, "SkipFinalSnapshot": True}
    return {
        "DBInstanceIdentifier": declared.name,
        "SkipFinalSnapshot": False,
        "FinalDBSnapshotIdentifier": final_snapshot(declared),
    }


def final_snapshot(declared: Declared) -> str:
    """Name of the snapshot that a deletion creates."""
    return str(declared.parameters.get("finalSnapshotIdentifier") or f"{declared.name}-final")


SUBNET_GROUP = AwsKind(
    kind_of("rds", "SubnetGroup", "subnetgroups"),
    "rds",
    create="CreateDBSubnetGroup",
    describe=Describe("DescribeDBSubnetGroups", by_name("DBSubnetGroupName"), "DBSubnetGroups.0"),
    delete="DeleteDBSubnetGroup",
    delete_ask=by_name("DBSubnetGroupName"),
    fields={"description": "DBSubnetGroupDescription", "subnetIds": "SubnetIds"},
    more=by_name("DBSubnetGroupName"),
    references={"subnetIds": "Subnet"},
    at_provider={"arn": "DBSubnetGroupArn"},
    tag_list="Tags",
)
DATABASE = AwsKind(
    kind_of("rds", "Instance", "instances"),
    "rds",
    create=lambda declared: (
        "RestoreDBInstanceFromDBSnapshot"
        if declared.parameters.get("snapshotIdentifier")
        else "CreateDBInstance"
    ),
    describe=Describe("DescribeDBInstances", by_name("DBInstanceIdentifier"), "DBInstances.0"),
    delete="DeleteDBInstance",
    delete_ask=_deleted_database,
    fields=fields_of(
        "engine",
        "engineVersion",
        "allocatedStorage",
        "storageEncrypted",
        "publiclyAccessible",
        "autoMinorVersionUpgrade",
        "backupRetentionPeriod",
        "copyTagsToSnapshot",
        "deletionProtection",
        instanceClass="DBInstanceClass",
        dbName="DBName",
        snapshotIdentifier="DBSnapshotIdentifier",
        username="MasterUsername",
        password="MasterUserPassword",  # noqa: S106 — a parameter's name
        dbSubnetGroupName="DBSubnetGroupName",
        vpcSecurityGroupIds="VpcSecurityGroupIds",
    ),
    more=by_name("DBInstanceIdentifier"),
    compared={
        "instanceClass": "DBInstanceClass",
        "allocatedStorage": "AllocatedStorage",
        "deletionProtection": "DeletionProtection",
        "backupRetentionPeriod": "BackupRetentionPeriod",
    },
    update="ModifyDBInstance",
    update_ask=_changed_database,
    state_at="DBInstanceStatus",
    ready_states=("available",),
    details=_database_details,
    references={"dbSubnetGroupName": "SubnetGroup", "vpcSecurityGroupIds": "SecurityGroup"},
    at_provider={
        "arn": "DBInstanceArn",
        "status": "DBInstanceStatus",
        "endpoint": "Endpoint.Address",
    },
    tag_list="Tags",
    backing=DATABASE_SERVER,
)
SNAPSHOT = AwsKind(
    kind_of("rds", "Snapshot", "snapshots"),
    "rds",
    create="CreateDBSnapshot",
    describe=Describe("DescribeDBSnapshots", by_name("DBSnapshotIdentifier"), "DBSnapshots.0"),
    delete="DeleteDBSnapshot",
    delete_ask=by_name("DBSnapshotIdentifier"),
    fields={"dbInstanceIdentifier": "DBInstanceIdentifier"},
    more=by_name("DBSnapshotIdentifier"),
    state_at="Status",
    ready_states=("available",),
    references={"dbInstanceIdentifier": "Instance.rds"},
    at_provider={"dbSnapshotArn": "DBSnapshotArn", "status": "Status"},
    tag_list="Tags",
)

KINDS = (SUBNET_GROUP, DATABASE, SNAPSHOT)
