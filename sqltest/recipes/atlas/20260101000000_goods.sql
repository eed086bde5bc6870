CREATE TABLE goods (id int PRIMARY KEY, name varchar(100) NOT NULL);
